"""Decay by depth: how much each application of a stored block counts in the block's gradient.

A block that runs at many depths has one learning rate. What can fall towards the first depths is
the share of each application in its gradient, and between blocks the rate. See docs/adr/0006.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor

from litebert.errors import SettingsError
from litebert.model.sharing import Plan

__all__ = ["DepthDecay", "scale_gradient"]


class DepthDecay:
    """The factors of one plan.

    Application d (0..L-1) of a sub-layer counts decay ** (L-1-d) in all. Of that, decay ** (L-1-m)
    is the learning rate of the stored sub-layer, m its last depth, and the rest, decay ** (m-d), the
    factor of the gradient: optimizers that divide by the size of the gradient see ratios only.

    Attributes:
        decay: in (0, 1].
        attention_scales: factor of the gradient of each step's attention.
        ffn_scales: the same of each step's feed-forward.
        attention_rates: factor of the rate of each stored attention.
        ffn_rates: the same of each stored feed-forward.
        step_rates: factor of the rate of what each step has for itself.
        embedding_rate: factor of the rate of the embeddings, decay ** L.
    """

    def __init__(self, plan: Plan, inner: int, decay: float) -> None:
        """Work out the factors.

        Args:
            plan: steps in running order.
            inner: steps of one depth.
            decay: factor from one depth to the one before.

        Raises:
            SettingsError: decay outside (0, 1].
        """
        if not 0 < decay <= 1:
            raise SettingsError(f"decay by depth is {decay}, allowed is above 0 and at most 1")
        depths = [number // inner for number in range(len(plan))]
        last = depths[-1]
        self.decay = decay
        self.attention_scales, self.attention_rates = _factors(
            [step.attention for step in plan], depths, decay
        )
        self.ffn_scales, self.ffn_rates = _factors([step.ffn for step in plan], depths, decay)
        self.step_rates = [decay ** (last - depth) for depth in depths]
        self.embedding_rate = decay ** (last + 1)


def _factors(
    stored: Sequence[int], depths: Sequence[int], decay: float
) -> tuple[list[float], list[float]]:
    """(factor of the gradient of each step, factor of the rate of each stored sub-layer)."""
    final = dict(zip(stored, depths, strict=True))  # the last one stays
    scales = [decay ** (final[i] - depth) for i, depth in zip(stored, depths, strict=True)]
    rates = [decay ** (depths[-1] - final[index]) for index in range(1 + max(stored))]
    return scales, rates


def scale_gradient(hidden: Float[Tensor, "*any"], factor: float) -> Float[Tensor, "*any"]:
    """Return `hidden`; the gradient that comes back to it is multiplied by `factor`.

    Everything in a backward pass is linear: with `factor` after a sub-layer and 1 / `factor` before
    it, the gradient of the sub-layer's weights is scaled and that of its input is not.
    """
    if factor == 1 or not torch.is_grad_enabled():
        return hidden
    return cast(Tensor, _ScaledGradient.apply(hidden, factor))


class _ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return hidden.view_as(hidden)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - one output
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor, None]:
        return grad * ctx.factor, None
