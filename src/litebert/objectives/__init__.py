"""Pretraining objectives: each corrupts clean examples and says what it loses on them."""
