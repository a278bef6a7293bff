"""One evaluation in full: scores, per-class table, confusion, calibration, worst mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.errors import DataError
from litebert.tasks import calibration
from litebert.tasks.abstention import AbstentionPoint, abstention_points
from litebert.tasks.calibration import ReliabilityBin
from litebert.tasks.metrics import ClassScore, class_table, confusion_matrix
from litebert.tasks.multilabel import multilabel_table
from litebert.tasks.slices import SliceScore, slice_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Float, Num

    from litebert.data.examples import Example
    from litebert.tasks.classification import SequenceClassification

__all__ = ["Evaluation", "Mistake", "confidence_of", "evaluate_answers", "example_losses"]

MAX_MISTAKES: Final = 50
MAX_POINTS: Final = 2_000
"""Pairs of truth and answer kept of a regression, spread evenly over the examples."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer, with what is needed to find and judge the example."""

    text: str
    pair: str | None
    truth: str
    answer: str
    confidence: float
    """Probability of the answer in [0, 1]; 0.0 in regression."""
    loss: float
    """Negative log-probability of the truth in nats; squared error in regression."""
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What one pass over the evaluation examples tells. Parts that a kind lacks are empty."""

    scores: dict[str, float]
    class_table: tuple[ClassScore, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    """Rows are true classes, columns answers; single-label kinds only."""
    reliability: tuple[ReliabilityBin, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    """Wrong answers with the largest loss, worst first."""
    points: tuple[tuple[float, float], ...] = ()
    """Regression: (truth, answer) in units of the target."""
    slices: tuple[SliceScore, ...] = ()
    """Scores by length, class, shared words and target."""
    abstention: tuple[AbstentionPoint, ...] = ()
    """Thresholds on confidence, and what remains above them; none for regression."""


def evaluate_answers(
    task: SequenceClassification,
    logits: Float[np.ndarray, "N C"],
    labels: Num[np.ndarray, "*S"],
    examples: Sequence[Example],
    *,
    max_mistakes: int = MAX_MISTAKES,
) -> Evaluation:
    """Score answers and gather everything that a report shows about them.

    Args:
        task: gives label names, temperature and threshold.
        logits: the model's answers, one row per example.
        labels: the truth, in the form that `task.encode_label` gives.
        examples: the examples in the same order.
        max_mistakes: how many of the worst mistakes to keep.

    Raises:
        DataError: different numbers of rows, or labels that do not fit the task.
    """
    if not len(logits) == len(labels) == len(examples):
        raise DataError(
            f"{len(logits)} answers, {len(labels)} labels and {len(examples)} examples; "
            "the three must be of the same evaluation, in the same order"
        )
    scores = task.score(logits, labels)
    losses = example_losses(task, logits, labels)
    if task.kind == "regression":
        answer = task.values(logits)
        truth = np.asarray(labels, np.float64) * task.target_scale + task.target_mean
        wrong = np.abs(answer - truth) > 0
        named = [(f"{t:.4g}", f"{a:.4g}", 0.0) for t, a in zip(truth, answer, strict=True)]
        step = max(1, -(-len(truth) // MAX_POINTS))
        pairs = np.stack([truth, answer], axis=1)[::step].tolist()
        points = tuple((float(t), float(a)) for t, a in pairs)
        return Evaluation(
            scores,
            mistakes=_worst(named, losses, wrong, examples, max_mistakes),
            points=points,
            slices=slice_scores(task, logits, labels, examples),
        )
    p = task.probabilities(logits)
    answers = task.decode(logits)
    if task.kind == "multilabel":
        table = multilabel_table(p, labels, task.labels, threshold=task.threshold)
        confusion = ()
        confidence, correct = calibration.binary_confidence(p, labels)
        truths = [_joined(np.flatnonzero(row == 1), task.labels) for row in labels]
        wrong = ((p >= task.threshold) != (np.asarray(labels) == 1)).any(axis=1)
    else:
        counts = confusion_matrix(labels, p.argmax(axis=1), len(task.labels))
        table = class_table(counts, task.labels)
        confusion = tuple(tuple(row) for row in counts.tolist())
        confidence, correct = calibration.top_confidence(p, labels)
        truths = [task.labels[int(label)] for label in labels]
        wrong = ~correct
    named = [
        (truth, ", ".join(a.label) if isinstance(a.label, tuple) else str(a.label), a.score)
        for truth, a in zip(truths, answers, strict=True)
    ]
    return Evaluation(
        scores,
        class_table=table,
        confusion=confusion,
        reliability=calibration.reliability_bins(confidence, correct),
        mistakes=_worst(named, losses, wrong, examples, max_mistakes),
        slices=slice_scores(task, logits, labels, examples),
        abstention=abstention_points(np.array([a.score for a in answers]), ~wrong),
    )


def confidence_of(
    task: SequenceClassification,
    logits: Float[np.ndarray, "N C"],
    labels: Num[np.ndarray, "*S"],
) -> tuple[Float[np.ndarray, " N"], Bool[np.ndarray, " N"]]:
    """Return the probability of each answer, and whether the whole answer is right."""
    p, truth = task.probabilities(logits), np.asarray(labels)
    sure = np.array([answer.score for answer in task.decode(logits)])
    if task.kind == "multilabel":
        return sure, ((p >= task.threshold) == (truth == 1)).all(axis=1)
    return sure, p.argmax(axis=1) == truth


def example_losses(
    task: SequenceClassification,
    logits: Float[np.ndarray, "N C"],
    labels: Num[np.ndarray, "*S"],
) -> Float[np.ndarray, " N"]:
    """Return the loss of each example: nats, or squared units of the target in regression."""
    if task.kind == "regression":
        truth = np.asarray(labels, np.float64) * task.target_scale + task.target_mean
        return (task.values(logits) - truth) ** 2
    p = task.probabilities(logits)
    if task.kind == "multilabel":
        right = np.where(np.asarray(labels) == 1, p, 1.0 - p)
        return -np.log(np.maximum(right, np.finfo(np.float32).tiny)).sum(axis=1)
    right = p[np.arange(len(labels)), np.asarray(labels, dtype=np.int64)]
    return -np.log(np.maximum(right, np.finfo(np.float32).tiny))


def _worst(
    named: Sequence[tuple[str, str, float]],
    losses: Float[np.ndarray, " N"],
    wrong: Bool[np.ndarray, " N"],
    examples: Sequence[Example],
    limit: int,
) -> tuple[Mistake, ...]:
    order = [int(i) for i in np.argsort(-losses, kind="stable") if wrong[i]][:limit]
    return tuple(
        Mistake(
            text=examples[i].text,
            pair=examples[i].pair,
            truth=named[i][0],
            answer=named[i][1],
            confidence=float(named[i][2]),
            loss=float(losses[i]),
            path=examples[i].path.name,
            line=examples[i].line,
        )
        for i in order
    )


def _joined(columns: np.ndarray, labels: Sequence[str]) -> str:
    return ", ".join(labels[int(i)] for i in columns)
