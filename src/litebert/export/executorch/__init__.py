"""ExecuTorch: the parts of a model as methods of one file, for phones."""
