"""What computes: a process for each model, and what the server and it say to each other."""
