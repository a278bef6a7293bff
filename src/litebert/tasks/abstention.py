"""Answering only when sure: how many answers remain, and how many of them are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.errors import DataError, SettingsError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

__all__ = ["TARGETS", "AbstentionPoint", "abstention_points", "answered", "threshold_for"]

TARGETS: Final = (0.8, 0.9, 0.95, 0.99)
"""Accuracies that a report looks for."""
MIN_ANSWERS: Final = 50
"""Answers from which a threshold is worth choosing."""


@dataclass(frozen=True, slots=True)
class AbstentionPoint:
    """A threshold on confidence, and what remains above it."""

    target: float
    """Wanted accuracy of the answers that are given, in [0, 1]."""
    threshold: float | None
    """Confidence from which an answer is given; None if no threshold reaches the target."""
    coverage: float
    """Share of the examples that are answered; 0.0 without a threshold."""
    accuracy: float
    """Share of right answers among them, measured on examples that did not choose the threshold."""


def threshold_for(
    confidence: Float[np.ndarray, " N"], correct: Bool[np.ndarray, " N"], target: float
) -> float | None:
    """Return the lowest confidence from which on answers are right as often as wanted.

    Answers of equal confidence are given or withheld together.

    Args:
        confidence: of each answer.
        correct: whether it is right.
        target: wanted accuracy, in (0, 1].

    Returns:
        None if no threshold reaches the target.

    Raises:
        SettingsError: a target outside of (0, 1].
        DataError: different lengths, nothing at all, or a confidence that is no number.
    """
    if not 0.0 < target <= 1.0:
        raise SettingsError(f"the wanted accuracy is {target}; give a number above 0 and at most 1")
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, bool)
    if sure.ndim != 1 or sure.shape != right.shape or not sure.size or np.isnan(sure).any():
        raise DataError(
            f"confidence has shape {sure.shape} and correctness {right.shape}; both must be one "
            "list of numbers, and not empty"
        )
    order = np.argsort(-sure, kind="stable")
    sorted_sure = sure[order]
    accuracy = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    is_last = np.append(sorted_sure[1:] != sorted_sure[:-1], True)  # of its equals
    reached = np.flatnonzero(is_last & (accuracy >= target - 1e-12))
    return float(sorted_sure[reached[-1]]) if reached.size else None


def answered(
    confidence: Float[np.ndarray, " N"], correct: Bool[np.ndarray, " N"], threshold: float
) -> tuple[float, float]:
    """Return coverage and accuracy of the answers whose confidence is at least `threshold`.

    The accuracy of no answers is 1.0: none of them is wrong.
    """
    given = np.asarray(confidence, np.float64) >= threshold
    if not given.any():
        return 0.0, 1.0
    return float(given.mean()), float(np.asarray(correct, bool)[given].mean())


def abstention_points(
    confidence: Float[np.ndarray, " N"],
    correct: Bool[np.ndarray, " N"],
    targets: Sequence[float] = TARGETS,
) -> tuple[AbstentionPoint, ...]:
    """Return a threshold for each wanted accuracy, with what it leads to.

    The threshold is chosen on all answers. Coverage and accuracy are those of two halves, each
    answered with the threshold of the other, so that no example judges a choice it took part in.
    Nothing for fewer than 50 answers.
    """
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, bool)
    if len(sure) < MIN_ANSWERS:
        return ()
    order = np.random.default_rng(0).permutation(len(sure))
    halves = order[::2], order[1::2]
    points: list[AbstentionPoint] = []
    for target in targets:
        given = hits = 0
        for scored, chosen in (halves, halves[::-1]):
            threshold = threshold_for(sure[chosen], right[chosen], target)
            if threshold is not None:
                kept = sure[scored] >= threshold
                given += int(kept.sum())
                hits += int(right[scored][kept].sum())
        points.append(
            AbstentionPoint(
                target=target,
                threshold=threshold_for(sure, right, target),
                coverage=given / len(sure),
                accuracy=hits / given if given else 1.0,
            )
        )
    return tuple(points)
