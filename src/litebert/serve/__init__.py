"""A model folder as an HTTP service: hardened HTTP in front, engines in processes of their own behind."""
