"""Exits: which settings there are, and which of them is fast and good enough."""
