"""From which probability on "no answer" is answered, chosen on labelled questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["fit_threshold"]


def fit_threshold(
    scores: Sequence[float], null_probabilities: Sequence[float], null_scores: Sequence[float]
) -> float:
    """Return the threshold in [0, 1] with the highest summed score; above it nothing is answered.

    It lies halfway between two questions, so that rounding moves none across. Differs from the
    official search: questions of one probability go one way together, and answering nothing at all
    is a choice too.

    Args:
        scores: of each question if it is answered; at least one.
        null_probabilities: of each question that it has no answer, in [0, 1].
        null_scores: of each question if nothing is answered.
    """
    order = np.argsort(null_probabilities, kind="stable")
    nulls = np.asarray(null_probabilities, np.float64)[order]
    gain = (np.asarray(scores, np.float64) - np.asarray(null_scores, np.float64))[order]
    total = np.concatenate([[0.0], np.cumsum(gain)])
    # A cut is possible before the first, after the last, and where the probability changes.
    possible = np.concatenate([[nulls[0] > 0], nulls[1:] != nulls[:-1], [True]])
    cut = int(np.flatnonzero(possible)[np.argmax(total[possible])])
    if cut == len(nulls):
        return 1.0
    if cut == 0:
        return float(nulls[0] / 2)
    return float((nulls[cut - 1] + nulls[cut]) / 2)
