"""What a joint span head gives for each token, and how its answer classes group. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = [
    "END_COLUMN",
    "RANK_COLUMN",
    "START_BEAM",
    "START_COLUMN",
    "answer_groups",
    "class_column",
]

START_BEAM: Final = 5
"""Starts for which the ends are worked out. Source: official `run_squad_v2.py`, start_n_top."""

START_COLUMN: Final = 0
"""Log-probability that the answer starts at this token, nats; -1e30 where it cannot."""
RANK_COLUMN: Final = 1
"""Place of this token among the best starts of its sequence, 0 to START_BEAM - 1; -1 for others."""
END_COLUMN: Final = 2
"""First of START_BEAM columns: log-probability that the answer ends here, given start 0, 1, ..."""


def class_column(number: int = 0) -> int:
    """Return the column of a logit of the answer's class; all tokens of a sequence have the same."""
    return END_COLUMN + START_BEAM + number


def answer_groups(labels: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return first and last (exclusive) index of each group of answer classes.

    Neighbours with the same word before a colon are one group, of which one is right
    (`yesno:yes`, `yesno:no`); any other label is a question of its own, answered 0 or 1
    (`impossible`).

    Args:
        labels: names of the classes, in the order of their logits.
    """
    bounds: list[tuple[int, int]] = []
    previous = ""
    for index, label in enumerate(labels):
        word, colon, _ = label.partition(":")
        if colon and bounds and word == previous:
            bounds[-1] = (bounds[-1][0], index + 1)
        else:
            bounds.append((index, index + 1))
        previous = word if colon else ""
    return tuple(bounds)
