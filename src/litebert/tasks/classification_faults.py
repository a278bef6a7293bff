"""What answers to labelled texts look like when training has collapsed or labels are mixed up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.tasks.metrics import confusion_matrix

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num

    from litebert.tasks.classification import SequenceClassification

__all__ = ["below_chance", "classification_faults"]

FEWEST: Final = 20
"""Answers below which nothing is concluded."""
CONSTANT: Final = 0.999
"""Share of equal answers that counts as all."""
CONSTANT_SPREAD: Final = 0.02
"""Numbers that spread less than this part of the targets' spread are one number."""
SWAPPED_GAIN: Final = 0.2
"""How much more accurate a consistent renaming must be to say that labels are mixed up."""
SIGMAS: Final = 3.0
"""Standard deviations below chance that are no accident."""
REVERSED: Final = -0.3
"""Correlation from which on numbers are called reversed."""


def classification_faults(
    task: SequenceClassification,
    logits: Float[np.ndarray, "N C"],
    labels: Num[np.ndarray, "*S"],
) -> list[str]:
    """Return what looks wrong, in sentences, each with its likely cause; none for few answers.

    Args:
        task: labels and thresholds.
        logits: answers to the evaluation examples.
        labels: as `task.encode_label` gives them.
    """
    truth = np.asarray(labels)
    if len(truth) < FEWEST:
        return []
    if task.kind == "regression":
        return _numbers(task, logits, truth)
    p = task.probabilities(logits)
    if task.kind == "multilabel":
        return _sets(p >= task.threshold, truth == 1)
    return _classes(p.argmax(axis=1), truth.astype(np.int64), task.labels)


def below_chance(
    task: SequenceClassification, accuracy: float | None, labels: Num[np.ndarray, "*S"]
) -> list[str]:
    """Say that the last model of a training is wrong more often than any constant answer.

    Where labels are swapped, the step that is kept is the one that had learnt least, and its answers
    show nothing; the last ones do.

    Args:
        task: kind and labels.
        accuracy: of the last evaluation, in [0, 1]; None if there is none.
        labels: of the evaluation examples.
    """
    truth = np.asarray(labels)
    if accuracy is None or task.kind not in ("binary", "multiclass") or len(truth) < FEWEST:
        return []
    shares = np.unique(truth, return_counts=True)[1] / len(truth)
    rarest = float(shares.min())
    if len(shares) < 2 or accuracy >= rarest - SIGMAS * np.sqrt(rarest * (1 - rarest) / len(truth)):
        return []
    return [
        f"at the end of the training answers were right for {accuracy:.1%}, less than always answering the "
        f"rarest label gives ({rarest:.1%}). Labels of the training and of the evaluation file are likely "
        "swapped; compare some rows of both"
    ]


def _classes(
    answers: Int[np.ndarray, " N"], truth: Int[np.ndarray, " N"], names: tuple[str, ...]
) -> list[str]:
    counts = np.bincount(answers, minlength=len(names))
    top = int(counts.argmax())
    share = float((truth == top).mean())
    if counts[top] >= CONSTANT * len(answers) and len(set(truth.tolist())) > 1:
        return [
            f"all {len(answers):,} answers are {names[top]!r:.60}, which is right for {share:.1%}: the model "
            "ignores the texts. It has learnt no more than which label is frequent"
        ]
    table = confusion_matrix(truth, answers, len(names))
    best = table.argmax(axis=1)
    known = np.flatnonzero(table.sum(axis=1))
    if len(set(best[known].tolist())) != len(known) or (best[known] == known).all():
        return []
    right = np.trace(table) / table.sum()
    renamed = table[known, best[known]].sum() / table.sum()
    if renamed - right < SWAPPED_GAIN:
        return []
    first = next(int(i) for i in known if best[i] != i)
    return [
        f"answers are right for {right:.1%}, but would be for {renamed:.1%} if labels had other names: "
        f"what is labelled {names[first]!r:.40} is mostly answered {names[best[first]]!r:.40}. Labels of "
        "the training and of the evaluation file are likely swapped; compare some rows of both"
    ]


def _sets(answers: np.ndarray, truth: np.ndarray) -> list[str]:
    if not truth.any() or truth.all():
        return []
    if not answers.any():
        return [
            f"no label is ever answered, though the texts have {truth.sum() / len(truth):.1f} each: no "
            "probability reaches the threshold. Train longer, or start from pretrained weights"
        ]
    if len(np.unique(answers, axis=0)) == 1 and len(np.unique(truth, axis=0)) > 1:
        return [
            f"all {len(answers):,} answers are the same set of labels: the model ignores the texts"
        ]
    return []


def _numbers(
    task: SequenceClassification, logits: Float[np.ndarray, "N 1"], truth: Float[np.ndarray, " N"]
) -> list[str]:
    values = task.values(logits)
    targets = truth * task.target_scale + task.target_mean
    spread = float(targets.std())
    if spread <= 0.0:
        return []
    if float(values.std()) < CONSTANT_SPREAD * spread:
        return [
            f"all {len(values):,} answers are about {values.mean():.4g}, the mean, while targets go from "
            f"{targets.min():.4g} to {targets.max():.4g}: the model ignores the texts, and a correlation "
            "with such answers says nothing"
        ]
    correlation = float(np.corrcoef(values, targets)[0, 1])
    if correlation < REVERSED:
        return [
            f"answers fall where targets rise (correlation {correlation:.2f}): the scale of the training "
            "and of the evaluation file is likely reversed; compare some rows of both"
        ]
    return []
