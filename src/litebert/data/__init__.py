"""Labelled files become tables, examples, splits and packed batches; nothing here needs torch."""
