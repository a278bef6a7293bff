"""Words that options of several commands allow."""

from __future__ import annotations

from enum import StrEnum


class BadRow(StrEnum):
    """What to do with a record that cannot be used."""

    error = "error"
    skip = "skip"


class Kind(StrEnum):
    """What a label is."""

    binary = "binary"
    multiclass = "multiclass"
    multilabel = "multilabel"
    regression = "regression"
