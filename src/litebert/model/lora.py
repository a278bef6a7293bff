"""Low-rank updates: what a depth adds to the projections it shares with other depths."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from litebert.model.config import AlbertConfig

__all__ = ["LowRank", "projection_shapes"]


class LowRank(nn.Module):
    """`B (A x) * alpha / r`, to be added to `W x`; 0 at the start, since B is.

    Source: Hu et al. 2021, LoRA, section 4.1; one for each depth of a shared block as in Bae et al.
    2024, Relaxed Recursive Transformers.
    """

    def __init__(self, inputs: int, outputs: int, rank: int, scale: float, std: float) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.empty(rank, inputs))
        self.b = nn.Parameter(torch.zeros(outputs, rank))
        self.scale = scale
        nn.init.trunc_normal_(self.a, std=std, a=-2 * std, b=2 * std)

    def forward(self, inputs: Float[Tensor, "*tokens I"]) -> Float[Tensor, "*tokens O"]:
        """Return the update."""
        return functional.linear(functional.linear(inputs, self.a), self.b) * self.scale


def projection_shapes(config: AlbertConfig) -> dict[str, tuple[int, int]]:
    """Return (inputs, outputs) of each projection of a block."""
    h, i = config.hidden_size, config.intermediate_size
    width, narrow = config.attention_size, config.key_value_size
    return {
        "query": (h, width),
        "key": (h, narrow),
        "value": (h, narrow),
        "output": (width, h),
        "gate": (h, i),
        "up": (h, i),
        "down": (i, h),
    }
