"""Scores of regression: correlation and error between two lists of numbers, in plain numpy.

A correlation with a constant list is undefined; it is reported as 0.0, because an answer that never
changes tells nothing about the order of the targets, and because a NaN would compare false with
everything in early stopping and is not valid JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from litebert.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Float, Num

__all__ = ["average_ranks", "pearson", "regression_scores", "spearman"]


def pearson(first: Num[np.ndarray, " N"], second: Num[np.ndarray, " N"]) -> float:
    """Linear correlation in [-1, 1]; 0.0 when either list is constant (see the module)."""
    a, b = _scaled(first), _scaled(second)
    spread = float(np.sqrt((a @ a) * (b @ b)))
    if spread == 0.0:
        return 0.0
    return float(np.clip((a @ b) / spread, -1.0, 1.0))


def spearman(first: Num[np.ndarray, " N"], second: Num[np.ndarray, " N"]) -> float:
    """Rank correlation in [-1, 1], ties sharing their average rank; 0.0 for a constant list."""
    return pearson(average_ranks(first), average_ranks(second))


def average_ranks(values: Num[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return ranks from 1 to N; equal values share the mean of the ranks they cover."""
    _, group, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[group.reshape(-1)]


def regression_scores(
    predicted: Float[np.ndarray, " N"], truth: Float[np.ndarray, " N"]
) -> dict[str, float]:
    """Return every regression score of one evaluation by name.

    Returns:
        pearson, spearman and their mean pearson_spearman in [-1, 1]; mse and mae in (squared) units
        of the target; r2 at most 1 (0.0 when the targets are constant).

    Raises:
        DataError: no examples, different lengths, or a number that is not finite.
    """
    guess, target = np.asarray(predicted, np.float64), np.asarray(truth, np.float64)
    if guess.ndim != 1 or guess.shape != target.shape or guess.size == 0:
        raise DataError(
            f"cannot compare targets of shape {target.shape} with answers of shape {guess.shape}; "
            "both must be the same non-empty list of numbers"
        )
    for name, numbers in (("target", target), ("answer", guess)):
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            raise DataError(
                f"{name} {numbers[wrong[0]]} at example {int(wrong[0])} is not a finite number; "
                "correct or remove that example"
            )
    error = guess - target
    centred = target - target.mean()
    spread = float(centred @ centred)
    linear, ranked = pearson(guess, target), spearman(guess, target)
    return {
        "pearson": linear,
        "spearman": ranked,
        "pearson_spearman": (linear + ranked) / 2,
        "mse": float(np.mean(error**2)),
        "mae": float(np.mean(np.abs(error))),
        "r2": 0.0 if spread == 0.0 else float(1.0 - (error @ error) / spread),
    }


def _scaled(values: Num[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size == 0 or numbers.min() == numbers.max():
        return np.zeros(numbers.shape)
    # Scaling by the largest magnitude first keeps the squares of huge and tiny numbers in range.
    numbers = numbers / np.abs(numbers).max()
    centred = numbers - numbers.mean()
    largest = float(np.abs(centred).max())
    return centred / largest if largest > 0 else centred
