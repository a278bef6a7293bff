"""Muon for the matrices of the blocks, AdamW for everything else: one optimizer, one state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch
from jaxtyping import Float
from torch import Tensor

from litebert.train.adam import UNCORRECTED_START, update_by_adam, with_gradient

COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
"""Of the quintic whose repetition drives singular values to about 1 (Jordan et al. 2024)."""
ITERATIONS: Final = 5
SMALLEST_NORM: Final = 1e-7
ADAMW_RMS: Final = 0.2
"""Root mean square of a typical AdamW update; Muon's are brought to the same (Liu et al. 2025)."""


class Muon(torch.optim.Optimizer):
    """Moves a matrix along the nearest orthogonal matrix to its averaged gradient.

    Groups whose `part` is "block" are updated so; all others (embeddings, heads, biases,
    LayerNorm) by AdamW. For a matrix of A x B the update is scaled by 0.2 sqrt(max(A, B)), so that
    rate and decay that suit AdamW suit Muon as well; the `lr_ratio` of its group is on top.

    The cost of a step does not depend on the depth where depths share their weights. Memory per
    weight of a block: one number instead of AdamW's two.

    Source: Jordan et al. 2024; Liu et al. 2025, "Muon is Scalable for LLM Training", section 2.2.
    Differs from: `torch.optim.Muon`, which always computes in bfloat16 (on CPUs without bfloat16
        units far slower than float32) and takes matrices only.
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        momentum: float = 0.95,
        bias_correction: bool = True,
    ) -> None:
        """Take groups.

        Args:
            params: groups of parameters; those with `part` "block" hold matrices only.
            lr: learning rate, >= 0.
            betas: AdamW's decay of the means of gradient and squared gradient, each in [0, 1).
            eps: AdamW's, added to sqrt(v), > 0.
            weight_decay: decoupled decay of both, >= 0.
            momentum: Muon's decay of the mean of the gradient, in [0, 1).
            bias_correction: whether AdamW corrects its means for their start at 0.
        """
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "momentum": momentum, "part": "matrix"})
        self._adam_start = 0.0 if bias_correction else UNCORRECTED_START

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Change the weights once.

        Args:
            closure: not called; the gradients are there already.
        """
        del closure
        for group in self.param_groups:
            if group["part"] != "block":
                update_by_adam(self.state, group, self._adam_start)
                continue
            for weight, gradient in with_gradient(group):
                self._update(weight, gradient, group)

    def _update(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, momentum = self.state[weight], group["momentum"]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        mean = state["momentum"].lerp_(gradient, 1 - momentum)
        direction = orthogonalize(gradient.lerp(mean, momentum))  # Nesterov: one step ahead
        rate = group["lr"]
        weight.mul_(1 - rate * group["weight_decay"])
        weight.add_(direction, alpha=-rate * ADAMW_RMS * math.sqrt(max(weight.shape)))


def orthogonalize(
    matrix: Float[Tensor, "A B"], dtype: torch.dtype | None = None
) -> Float[Tensor, "A B"]:
    """Return a matrix of the same singular vectors with singular values of about 1 (0.7 to 1.2).

    Args:
        matrix: any matrix; zeros stay zeros.
        dtype: number type of the products; None: bfloat16 on CUDA, else float32.
    """
    a, b, c = COEFFICIENTS
    x = matrix.to(dtype or (torch.bfloat16 if matrix.is_cuda else torch.float32))
    is_tall = x.shape[0] > x.shape[1]
    if is_tall:
        x = x.T
    x = x / x.norm().clamp(min=SMALLEST_NORM)
    for _ in range(ITERATIONS):
        gram = x @ x.T  # [min(A, B), min(A, B)]
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.T if is_tall else x).to(matrix.dtype)
