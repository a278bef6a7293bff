"""A new classifier on a pretrained encoder begins as the linear head that fits its vectors best.

Fine-tuning then starts from what the encoder knows already, not from a head of random numbers that
pulls it about. Source: Kumar et al. 2022, Fine-Tuning can Distort Pretrained Features, section 3 (LP-FT).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import nn

from litebert.recipes.finetune.defaults import begins_fitted
from litebert.recipes.finetune.known_head import is_head_known
from litebert.train.evaluate import predict_logits
from litebert.train.logistic import fit_logistic
from litebert.train.ridge import fit_ridge

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped

    from litebert.data.batch import EncodedExample
    from litebert.model.albert import AlbertWithHead

    Vectors = Float[np.ndarray, "N H"]
    Labels = Shaped[np.ndarray, " N"]

__all__ = ["spread", "start_classifier"]

log = logging.getLogger(__name__)

MOST_TOKENS: Final = 50_000
"""Tokens that are read for it: seconds, where training takes minutes."""
STRENGTHS: Final = (0.03, 0.3, 3.0, 30.0)
"""Inverse regularisations that are tried."""
HELD_OUT: Final = 4
"""Every so many examples choose among them."""
LEAST: Final = 16
"""Examples below which nothing is fitted."""


def start_classifier(model: AlbertWithHead, plan: Any) -> None:
    """Fit the classifier of a `sequence` head to the training examples, the encoder as it is.

    Nothing is done for other heads, other labels than one class of several or a number, heads that were
    trained for the same labels, or few examples.

    Args:
        model: with a new head.
        plan: an `AnyPlan` that starts from a folder.
    """
    if not begins_fitted(plan.model) or is_head_known(plan):
        return
    examples = spread(plan.train.encoded, MOST_TOKENS)
    if len(examples) < LEAST:
        return
    head = model.heads["sequence"]
    classifier = head.classifier
    assert isinstance(classifier, nn.Linear)  # noqa: S101 - for the type checker
    head.classifier = nn.Identity()
    try:
        vectors = predict_logits(model, examples)
    finally:
        head.classifier = classifier
    if vectors is None or not np.isfinite(vectors).all():
        return
    labels = np.array([example.label for example in examples])
    is_number = model.config.problem_type == "regression"
    fit = fit_numbers() if is_number else fit_classes(classifier.out_features)
    weights, biases = fit_probe(vectors, labels, fit)
    with torch.no_grad():
        classifier.weight.copy_(torch.from_numpy(weights))
        classifier.bias.copy_(torch.from_numpy(biases))


@dataclass(frozen=True, slots=True)
class Fit:
    """How a linear head is fitted to examples, and what it loses on others."""

    head: Callable[[Vectors, Labels, float], tuple[np.ndarray, np.ndarray]]
    loss: Callable[[np.ndarray, Labels], float]


def fit_classes(num_classes: int) -> Fit:
    """Softmax regression on class ids, scored by its cross-entropy."""

    def loss(logits: np.ndarray, labels: Labels) -> float:
        logits = logits - logits.max(-1, keepdims=True)
        chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        return -float(chances[np.arange(len(labels)), labels].mean())

    def head(vectors: Vectors, labels: Labels, strength: float) -> tuple[np.ndarray, np.ndarray]:
        return fit_logistic(vectors, labels, num_classes, strength=strength)

    return Fit(head, loss)


def fit_numbers() -> Fit:
    """Ridge regression on numbers, scored by its mean squared error."""

    def loss(logits: np.ndarray, labels: Labels) -> float:
        return float(np.square(logits[:, 0] - labels).mean())

    return Fit(
        lambda vectors, labels, strength: fit_ridge(vectors, labels, strength=strength), loss
    )


def fit_probe(vectors: Vectors, labels: Labels, fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Return weights [C, H] and biases [C], with the regularisation that answers held-out examples best.

    Args:
        vectors: one row for each example.
        labels: class of each, or its number.
        fit: `fit_classes` or `fit_numbers`.
    """
    is_held = np.arange(len(labels)) % HELD_OUT == 0
    losses: list[float] = []
    for strength in STRENGTHS:
        weights, biases = fit.head(vectors[~is_held], labels[~is_held], strength)
        losses.append(fit.loss(vectors[is_held] @ weights.T + biases, labels[is_held]))
    strength = STRENGTHS[int(np.argmin(losses))]
    log.info("linear head: held-out loss %.3f at strength %g", min(losses), strength)
    return fit.head(vectors, labels, strength)


def spread(examples: Sequence[EncodedExample], most_tokens: int) -> list[EncodedExample]:
    """Return evenly spaced examples, all if they have at most so many tokens."""
    total = sum(len(example) for example in examples)
    step = max(1, -(-total // most_tokens))
    return list(examples[::step])
