"""What a model that ignores its input would score, and whether one does ignore it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

IGNORED_LABEL = -100
"""Label of positions that take no part in the loss."""
CONSTANT_FRACTION = 0.999
"""Part of the answers that must be equal for the answers to count as constant."""
CONSTANT_SPREAD = 0.05
"""Regression: answers that spread less than this part of the labels' spread are constant."""

_ROUNDING = 1e-9


def chance_loss(labels: NDArray[Any]) -> float | None:
    """Return the mean loss of the best constant answer, in nats (or squared units).

    Class labels (integers): the entropy of their frequencies, ln C when balanced. Multi-hot
    (float [N, C]): the mean binary entropy. Numbers (float [N]): their variance. None when there
    is no label, or when all are equal, so that a constant answer is right.
    """
    if labels.size == 0:
        return None
    if np.issubdtype(labels.dtype, np.integer):
        _, counts = np.unique(labels[labels != IGNORED_LABEL], return_counts=True)
        parts = counts / max(1, counts.sum())
        loss = float(-(parts * np.log(parts)).sum())
    elif labels.ndim == 2:
        ones = np.clip(labels.mean(0, dtype=np.float64), 1e-12, 1 - 1e-12)
        loss = float(-(ones * np.log(ones) + (1 - ones) * np.log(1 - ones)).mean())
    else:
        loss = float(np.var(labels, dtype=np.float64))
    return loss if loss > 1e-9 else None


@runtime_checkable
class KnowsChance(Protocol):
    """A loss that can say what a constant answer costs in its own terms."""

    def chance(self, labels: NDArray[Any]) -> float | None:
        """Return the mean loss of the best constant answer to these labels; None if unknown."""
        ...


def chance_of(step_loss: object | None, labels: NDArray[Any] | None) -> float | None:
    """Return what the best constant answer to the training labels costs; None if unknown.

    Args:
        step_loss: what is minimised; None: the model's own loss on the labels.
        labels: of the training examples; None if unknown.
    """
    if labels is None:
        return None
    if step_loss is None:
        return chance_loss(labels)
    return step_loss.chance(labels) if isinstance(step_loss, KnowsChance) else None


@dataclass(frozen=True, slots=True)
class Answers:
    """How far the answers to an evaluation set depend on the input.

    Attributes:
        is_constant: (nearly) every answer is the same although the labels vary.
        answer: the constant class or number, for the report.
        loss: mean loss of these answers, in the units of `chance`.
        chance: mean loss of the best constant answer.
        label_share: part of the labels that the constant answer gets right; 0 for regression.
        signal: how much better the answers fit their own label than the labels of others, in
            standard errors; above 3 the answers depend on the input in the right way.
    """

    is_constant: bool
    answer: str
    loss: float
    chance: float
    label_share: float
    signal: float

    @property
    def gain(self) -> float:
        """Part of the chance loss that the answers save: <= 0 is no better than ignoring input."""
        return 1.0 - self.loss / self.chance


def examine_answers(logits: Float[NDArray[Any], "N C"], labels: NDArray[Any]) -> Answers | None:
    """Compare logits with labels, or return None when the labels do not vary.

    Args:
        logits: one row an example (or labelled token); [N] or [N, 1] for regression.
        labels: int [N], float [N, C] (multi-label) or float [N] (regression).
    """
    scores = logits.astype(np.float64).reshape(len(logits), -1)
    if np.issubdtype(labels.dtype, np.integer):
        kept = labels != IGNORED_LABEL
        scores, labels = scores[kept], labels[kept]
    chance = chance_loss(labels)
    if chance is None or not len(scores):
        return None
    if np.issubdtype(labels.dtype, np.integer):
        return _examine_classes(scores, labels, chance)
    if labels.ndim == 2:
        return _examine_multi(scores, labels, chance)
    return _examine_numbers(scores[:, 0], labels, chance)


def _examine_classes(scores: NDArray[Any], labels: NDArray[Any], chance: float) -> Answers:
    shifted = scores - scores.max(1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    loss = float(-log_probs[np.arange(len(labels)), labels].mean())
    counts = np.bincount(scores.argmax(1), minlength=scores.shape[1])
    top = int(counts.argmax())
    return Answers(
        is_constant=bool(counts[top] >= CONSTANT_FRACTION * len(labels)),
        answer=f"class {top}",
        loss=loss,
        chance=chance,
        label_share=float((labels == top).mean()),
        signal=_standard_errors((log_probs - log_probs.mean(0))[np.arange(len(labels)), labels]),
    )


def _examine_multi(scores: NDArray[Any], labels: NDArray[Any], chance: float) -> Answers:
    loss = float((np.logaddexp(0, scores) - scores * labels).mean())
    rows, counts = np.unique(scores > 0, axis=0, return_counts=True)
    top = int(counts.argmax())
    chosen = np.flatnonzero(rows[top]).tolist()
    return Answers(
        is_constant=bool(counts[top] >= CONSTANT_FRACTION * len(labels)),
        answer=f"classes {chosen}" if chosen else "no class",
        loss=loss,
        chance=chance,
        label_share=float((labels == rows[top]).all(1).mean()),
        signal=_standard_errors(((scores - scores.mean(0)) * (labels - labels.mean(0))).sum(1)),
    )


def _examine_numbers(scores: NDArray[Any], labels: NDArray[Any], chance: float) -> Answers:
    return Answers(
        is_constant=bool(np.std(scores) <= CONSTANT_SPREAD * np.std(labels)),
        answer=f"{scores.mean():.4g}",
        loss=float(((scores - labels) ** 2).mean()),
        chance=chance,
        label_share=0.0,
        signal=_standard_errors((scores - scores.mean()) * (labels - labels.mean())),
    )


def _standard_errors(values: NDArray[Any]) -> float:
    """Mean of `values` in units of its standard error; 0 where the spread is mere rounding."""
    spread = float(np.std(values))
    if not spread > _ROUNDING or not np.isfinite(spread):
        return 0.0
    return float(values.mean()) / spread * float(np.sqrt(len(values)))
