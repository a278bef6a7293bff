"""Measurements that are committed with the code; see docs/results."""
