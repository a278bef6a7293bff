"""Scores of multi-label classification from 0/1 matrices, in plain numpy.

A ratio with a zero denominator is 0.0, as in scikit-learn's default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from litebert.errors import DataError
from litebert.tasks.metrics import ClassScore, safe_ratio, table_of_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Num

__all__ = ["multilabel_scores", "multilabel_table"]


def multilabel_scores(
    probabilities: Float[np.ndarray, "N C"],
    targets: Num[np.ndarray, "N C"],
    *,
    threshold: float = 0.5,
) -> dict[str, float]:
    """Return every multi-label score of one evaluation by name.

    Args:
        probabilities: one value in [0, 1] per example and label.
        targets: 0 or 1 per example and label.
        threshold: a label is answered when its probability is at least this, in [0, 1].

    Returns:
        subset_accuracy (all labels of an example right), label_accuracy (share of single yes/no
        decisions right), f1_micro, f1_macro (mean over all C labels), f1_samples (mean over
        examples), precision_micro, recall_micro, log_loss (mean binary cross-entropy, in nats).

    Raises:
        DataError: empty, different shapes, or a target that is neither 0 nor 1.
    """
    truth = _checked(probabilities, targets)
    answer = probabilities >= threshold
    both = (answer & truth).sum(axis=0)
    size = answer.sum(axis=0) + truth.sum(axis=0)
    per_example = safe_ratio(
        2 * (answer & truth).sum(axis=1), answer.sum(axis=1) + truth.sum(axis=1)
    )
    floor = float(np.finfo(np.float32).tiny)
    p = np.asarray(probabilities, dtype=np.float64)
    right = np.where(truth, p, 1.0 - p)
    return {
        "subset_accuracy": float((answer == truth).all(axis=1).mean()),
        "label_accuracy": float((answer == truth).mean()),
        "f1_micro": float(safe_ratio(2 * both.sum(), size.sum())),
        "f1_macro": float(safe_ratio(2 * both, size).mean()),
        "f1_samples": float(per_example.mean()),
        "precision_micro": float(safe_ratio(both.sum(), answer.sum())),
        "recall_micro": float(safe_ratio(both.sum(), truth.sum())),
        "log_loss": float(-np.log(np.maximum(right, floor)).mean()),
    }


def multilabel_table(
    probabilities: Float[np.ndarray, "N C"],
    targets: Num[np.ndarray, "N C"],
    labels: Sequence[str],
    *,
    threshold: float = 0.5,
) -> tuple[ClassScore, ...]:
    """Return precision, recall, F1 and counts of every label, in the order of `labels`.

    Raises:
        DataError: empty, different shapes, another number of labels, or a target that is neither
            0 nor 1.
    """
    truth = _checked(probabilities, targets)
    answer = probabilities >= threshold
    counts = ((answer & truth).sum(axis=0), truth.sum(axis=0), answer.sum(axis=0))
    return table_of_counts(*counts, labels)


def _checked(
    probabilities: Float[np.ndarray, "N C"], targets: Num[np.ndarray, "N C"]
) -> np.ndarray:
    truth = np.asarray(targets)
    if truth.ndim != 2 or truth.shape != probabilities.shape or truth.size == 0:
        raise DataError(
            f"cannot compare targets of shape {truth.shape} with answers of shape "
            f"{probabilities.shape}; both must be the same non-empty table, examples by labels"
        )
    wrong = np.argwhere((truth != 0) & (truth != 1))
    if wrong.size:
        row, column = (int(x) for x in wrong[0])
        raise DataError(
            f"target {truth[row, column]} of example {row}, label {column} is neither 0 nor 1"
        )
    return truth == 1
