"""LAMB as the official ALBERT code has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from litebert.train.adam import (
    UNCORRECTED_START,
    uncorrected_direction,
    update_by_adam,
    with_gradient,
)


class Lamb(torch.optim.Optimizer):
    """Adam's update, scaled for each matrix to the size of that matrix.

    For a matrix w with means m and v of the gradient and the squared gradient:
    u = m / (sqrt(v) + eps) + decay * w, then w -= lr * |w| / |u| * u. The ratio is not clipped,
    and it is 1 where either norm is 0. Groups whose `part` is "vector" (biases and LayerNorm) get
    Adam's update, neither decayed (their group says so) nor scaled. Nothing corrects m and v for
    their start at 0.

    Weights that several depths share are one matrix: it has one ratio, from the gradient summed
    over its depths. The gradient of all weights together is clipped by the training loop.

    Memory: two numbers per weight, and for a moment a third for the largest matrix.

    Source: `LAMBOptimizer` of google-research/albert `lamb_optimizer.py`, with the exclusions of
        `optimization.py`; You et al. 2020, algorithm 2.
    Differs from: the paper, which corrects the bias and clips |w|.
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        """Take parameters or groups.

        Args:
            params: parameters, or groups of them.
            lr: learning rate, >= 0.
            betas: decay of the means of gradient and squared gradient, each in [0, 1).
            eps: added to sqrt(v), > 0.
            weight_decay: part of a weight that is added to its direction, >= 0.
        """
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "part": "matrix"})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Change the weights once.

        Args:
            closure: not called; the gradients are there already.
        """
        del closure
        for group in self.param_groups:
            if group["part"] == "vector":
                update_by_adam(self.state, group, UNCORRECTED_START)
                continue
            for weight, gradient in with_gradient(group):
                update = uncorrected_direction(self.state, weight, gradient, group)
                if group["weight_decay"]:
                    update.add_(weight, alpha=group["weight_decay"])
                weight.addcmul_(update, trust_ratio(weight, update), value=-group["lr"])


def trust_ratio(weight: Tensor, update: Tensor) -> Tensor:
    """Return |weight| / |update| as a tensor of no dimension, 1 where either norm is 0."""
    weight_norm = torch.linalg.vector_norm(weight)
    update_norm = torch.linalg.vector_norm(update)
    is_defined = (weight_norm > 0) & (update_norm > 0)
    return torch.where(is_defined, weight_norm / update_norm, 1.0)
