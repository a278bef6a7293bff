"""Train, shrink and ship parameter-shared text encoders (ALBERT and its kin)."""

__version__ = "0.1.0"
