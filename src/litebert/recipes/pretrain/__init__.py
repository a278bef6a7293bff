"""Pretraining from prepared shards: settings, batches, held-out scores, estimate, run and report."""
