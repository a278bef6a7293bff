"""Pruning: attention heads, FFN units and vocabulary go for good, from every depth at once."""
