"""How well a model predicts held-out text: the same masks and orders at every evaluation."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from litebert.data.batch import Batch, split_batch
from litebert.objectives.examples import ExampleMaker, collate_examples
from litebert.objectives.loss import PretrainingLoss
from litebert.train.evaluate import Evaluation
from litebert.train.micro import to_device
from litebert.train.precision import Precision
from litebert.train.ranks import ALONE, Ranks
from litebert.train.stop import StopRequest

__all__ = ["PretrainEvaluator", "make_eval_batch"]


def make_eval_batch(maker: ExampleMaker, chunks: Sequence[int], ranks: Ranks = ALONE) -> Batch:
    """Return the fixed examples of all evaluations, or one rank's share of them."""
    own = chunks[ranks.rank :: ranks.world] or chunks[:1]
    return collate_examples([maker.make(0, chunk, 1.0) for chunk in own])


@dataclass(frozen=True, slots=True, eq=False)
class PretrainEvaluator:
    """Scores a model: an `Evaluate`.

    Attributes:
        batch: this rank's examples.
        loss: the objectives.
        micro_batch_tokens: most real tokens per forward pass.
        precision: number type of the forward pass.
        ranks: the processes that share the evaluation.
    """

    batch: Batch
    loss: PretrainingLoss
    micro_batch_tokens: int
    precision: Precision
    ranks: Ranks = ALONE

    def __call__(self, model: nn.Module, stop: StopRequest) -> Evaluation | None:
        """Return loss and accuracy of every objective; None when a stop was requested."""
        start = time.monotonic()
        device = next(model.parameters()).device
        sums: dict[str, float] = {}
        was_training = model.training
        model.eval()
        try:
            for micro in split_batch(self.batch, self.micro_batch_tokens):
                if stop.is_requested and self.ranks.world == 1:
                    return None
                with torch.inference_mode(), self.precision.autocast():
                    found = self.loss.measure(model, to_device(micro, device))
                for name, value in found.items():
                    sums[name] = sums.get(name, 0.0) + value
        finally:
            model.train(was_training)
        metrics = means(self.ranks.sum_numbers(sums))
        score = -sum(
            weight * metrics[f"{name}_loss"]
            for name, weight in self.loss.weights.items()
            if f"{name}_loss" in metrics
        )
        return Evaluation(score, {"score": score, **metrics}, seconds=time.monotonic() - start)


def means(sums: Mapping[str, float]) -> dict[str, float]:
    """Turn sums `X_loss_sum`, `X_correct` and `X_count` into means by name.

    `mlm_perplexity` is the exponential of the mean loss of a masked token, `word_perplexity` that
    of a masked word.
    """
    metrics: dict[str, float] = {}
    for name in [key.removesuffix("_count") for key in sums if key.endswith("_count")]:
        count = sums[f"{name}_count"]
        if not count:
            continue
        if f"{name}_loss_sum" in sums:
            mean = sums[f"{name}_loss_sum"] / count
            metrics[f"{name}_loss"] = mean
            if name in ("mlm", "word"):
                metrics[f"{name}_perplexity"] = math.exp(min(mean, 700.0))
        if f"{name}_correct" in sums:
            metrics[f"{name}_accuracy"] = sums[f"{name}_correct"] / count
    return metrics
