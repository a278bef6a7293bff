"""What `benchmarks.serve_attack` does to a server, one file for each kind of attack."""
