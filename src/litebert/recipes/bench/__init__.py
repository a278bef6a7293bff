"""What a model costs to run here: each back-end in a process of its own, in turns."""
