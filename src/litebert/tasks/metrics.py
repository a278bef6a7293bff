"""Scores of single-label classification from integer labels, in plain numpy.

Everything but `log_loss` follows from the confusion matrix. A ratio with a zero denominator is 0.0,
as in scikit-learn: a class never predicted has precision 0, a constant answer has Matthews 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from litebert.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Int, Num

__all__ = [
    "ClassScore",
    "accuracy",
    "balanced_accuracy",
    "class_table",
    "classification_scores",
    "confusion_matrix",
    "f1",
    "log_loss",
    "matthews",
    "safe_ratio",
    "table_of_counts",
]


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One row of the per-class table; the three scores lie in [0, 1]."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int
    """Examples that carry this label."""
    predicted: int
    """Examples that were given this label."""


def safe_ratio(
    numerator: Num[np.ndarray, "*S"], denominator: Num[np.ndarray, "*S"]
) -> Float[np.ndarray, "*S"]:
    """Divide element by element; where the denominator is 0 the result is 0.0."""
    top = np.asarray(numerator, dtype=np.float64)
    bottom = np.asarray(denominator, dtype=np.float64)
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0)


def confusion_matrix(
    truth: Int[np.ndarray, " N"], predicted: Int[np.ndarray, " N"], num_classes: int
) -> Int[np.ndarray, "C C"]:
    """Count how often each true class (row) was answered with each class (column).

    Raises:
        DataError: no examples, different lengths, or an id outside 0..num_classes - 1.
    """
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    if truth.ndim != 1 or truth.shape != predicted.shape or truth.size == 0:
        raise DataError(
            f"cannot compare labels of shape {truth.shape} with answers of shape "
            f"{predicted.shape}; both must be the same non-empty list of class ids"
        )
    for name, ids in (("label", truth), ("answer", predicted)):
        wrong = np.flatnonzero((ids < 0) | (ids >= num_classes))
        if wrong.size:
            raise DataError(
                f"{name} id {int(ids[wrong[0]])} at example {int(wrong[0])} is outside "
                f"0..{num_classes - 1}; the data and the label map of the task do not fit"
            )
    flat = truth.astype(np.int64) * num_classes + predicted.astype(np.int64)
    return np.bincount(flat, minlength=num_classes**2).reshape(num_classes, num_classes)


def accuracy(confusion: Int[np.ndarray, "C C"]) -> float:
    """Share of examples answered right, in [0, 1]."""
    return float(safe_ratio(np.trace(confusion), confusion.sum()))


def balanced_accuracy(confusion: Int[np.ndarray, "C C"]) -> float:
    """Mean recall over the classes that occur in the labels, in [0, 1]."""
    support = confusion.sum(axis=1)
    present = support > 0
    if not present.any():
        return 0.0
    return float(np.mean(np.diag(confusion)[present] / support[present]))


def class_table(confusion: Int[np.ndarray, "C C"], labels: Sequence[str]) -> tuple[ClassScore, ...]:
    """Return precision, recall, F1 and counts of every class, in the order of `labels`.

    Raises:
        DataError: the number of labels is not C.
    """
    return table_of_counts(np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0), labels)


def table_of_counts(
    hits: Int[np.ndarray, " C"],
    support: Int[np.ndarray, " C"],
    predicted: Int[np.ndarray, " C"],
    labels: Sequence[str],
) -> tuple[ClassScore, ...]:
    """Return the scores of every class from its right answers, its examples and its answers.

    Raises:
        DataError: the number of labels is not C.
    """
    if len(labels) != len(hits):
        raise DataError(
            f"{len(labels)} label names for scores of {len(hits)} classes; give one name per class"
        )
    precision, recall = safe_ratio(hits, predicted), safe_ratio(hits, support)
    f1_scores = safe_ratio(2 * hits, support + predicted)
    return tuple(
        ClassScore(
            label=label,
            precision=float(precision[i]),
            recall=float(recall[i]),
            f1=float(f1_scores[i]),
            support=int(support[i]),
            predicted=int(predicted[i]),
        )
        for i, label in enumerate(labels)
    )


def f1(confusion: Int[np.ndarray, "C C"], average: str) -> float:
    """Return F1 in [0, 1], averaged over classes.

    Args:
        confusion: counts, rows are true classes.
        average: "macro" (plain mean over classes that occur in labels or answers), "micro" (equals
            accuracy here) or "weighted" (mean weighted by the number of true examples).

    Raises:
        DataError: another word for `average`.
    """
    if average == "micro":
        return accuracy(confusion)
    hits, support, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    scores = safe_ratio(2 * hits, support + predicted)
    if average == "weighted":
        return float(safe_ratio((scores * support).sum(), support.sum()))
    if average == "macro":
        seen = (support + predicted) > 0
        return float(scores[seen].mean()) if seen.any() else 0.0
    raise DataError(f"average {average!r} is not known; use 'macro', 'micro' or 'weighted'")


def matthews(confusion: Int[np.ndarray, "C C"]) -> float:
    """Multi-class Matthews correlation in [-1, 1]; 0.0 when labels or answers are constant.

    Source: Gorodkin 2004, the R_K statistic; for two classes it is the usual coefficient.
    """
    counts = confusion.astype(np.float64)
    total, hits = counts.sum(), np.trace(counts)
    truth, predicted = counts.sum(axis=1), counts.sum(axis=0)
    spread = (total**2 - predicted @ predicted) * (total**2 - truth @ truth)
    if spread <= 0:
        return 0.0
    return float((hits * total - truth @ predicted) / np.sqrt(spread))


def log_loss(probabilities: Float[np.ndarray, "N C"], labels: Int[np.ndarray, " N"]) -> float:
    """Mean negative log-probability of the true class, in nats.

    Probabilities are floored at the smallest positive float32, so that one certain mistake costs
    87.3 nats instead of infinity.
    """
    chosen = np.asarray(probabilities, dtype=np.float64)[np.arange(len(labels)), labels]
    return float(-np.log(np.maximum(chosen, np.finfo(np.float32).tiny)).mean())


def classification_scores(
    probabilities: Float[np.ndarray, "N C"], labels: Int[np.ndarray, " N"]
) -> dict[str, float]:
    """Return every single-label score of one evaluation by name.

    Args:
        probabilities: one row per example, each summing to 1.
        labels: class ids.

    Returns:
        accuracy, balanced_accuracy, f1_macro, f1_micro, f1_weighted, matthews, log_loss; with two
        classes also f1, precision and recall of the class with id 1.
    """
    num_classes = probabilities.shape[1]
    confusion = confusion_matrix(labels, probabilities.argmax(axis=1), num_classes)
    scores = {
        "accuracy": accuracy(confusion),
        "balanced_accuracy": balanced_accuracy(confusion),
        "f1_macro": f1(confusion, "macro"),
        "f1_micro": f1(confusion, "micro"),
        "f1_weighted": f1(confusion, "weighted"),
        "matthews": matthews(confusion),
        "log_loss": log_loss(probabilities, labels),
    }
    if num_classes == 2:
        positive = class_table(confusion, ("0", "1"))[1]
        scores |= {"f1": positive.f1, "precision": positive.precision, "recall": positive.recall}
    return scores
