"""Wiring: each recipe puts the parts below it together into one job; no algorithm lives here."""
