"""Model folders and training states on disk: atomic, verified, free of pickle."""
