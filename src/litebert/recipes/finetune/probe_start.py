"""A new classifier on a pretrained encoder begins as the linear head that fits its vectors best.

Fine-tuning then starts from what the encoder knows already, not from a head of random numbers that
pulls it about. Source: Kumar et al. 2022, Fine-Tuning can Distort Pretrained Features, section 3 (LP-FT).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from torch import nn

from litebert.recipes.finetune.defaults import begins_fitted
from litebert.recipes.finetune.known_head import is_head_known
from litebert.train.evaluate import predict_logits
from litebert.train.logistic import fit_logistic

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from litebert.data.batch import EncodedExample
    from litebert.model.albert import AlbertWithHead

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

    Nothing is done for other heads, other labels than one class of several, heads that were trained
    for the same labels, or few examples.

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
    labels = np.array([example.label for example in examples], np.int64)
    weights, biases = fit_probe(vectors, labels, classifier.out_features)
    with torch.no_grad():
        classifier.weight.copy_(torch.from_numpy(weights))
        classifier.bias.copy_(torch.from_numpy(biases))


def fit_probe(
    vectors: Float[np.ndarray, "N H"], labels: Int[np.ndarray, " N"], num_classes: int
) -> tuple[Float[np.ndarray, "C H"], Float[np.ndarray, " C"]]:
    """Return weights and biases, with the regularisation that answers held-out examples best.

    Args:
        vectors: one row for each example.
        labels: class of each.
        num_classes: C.
    """
    is_held = np.arange(len(labels)) % HELD_OUT == 0
    losses: list[float] = []
    for strength in STRENGTHS:
        weights, biases = fit_logistic(
            vectors[~is_held], labels[~is_held], num_classes, strength=strength
        )
        logits = vectors[is_held] @ weights.T + biases
        logits -= logits.max(-1, keepdims=True)
        chances = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        losses.append(-float(chances[np.arange(len(logits)), labels[is_held]].mean()))
    strength = STRENGTHS[int(np.argmin(losses))]
    log.info("linear head: held-out loss %.3f at strength %g", min(losses), strength)
    return fit_logistic(vectors, labels, num_classes, strength=strength)


def spread(examples: Sequence[EncodedExample], most_tokens: int) -> list[EncodedExample]:
    """Return evenly spaced examples, all if they have at most so many tokens."""
    total = sum(len(example) for example in examples)
    step = max(1, -(-total // most_tokens))
    return list(examples[::step])
