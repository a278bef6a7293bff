"""Depth embeddings: what tells a shared block at which depth it runs."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["DepthEmbeddings"]


class DepthEmbeddings(nn.Module):
    """A vector of size H for each depth, added to all tokens before it; 0 at the start.

    Source: Dehghani et al. 2019, Universal Transformers, section 2.1 (the time-step coordinate).
    Differs from: fixed sines there; learned here, so that a finished model can be given them.
    """

    def __init__(self, depths: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(depths, hidden))

    def forward(self, hidden: Float[Tensor, "*tokens H"], depth: int) -> Float[Tensor, "*tokens H"]:
        """Return the input of a depth, 0..L-1."""
        return hidden + self.weight[depth]
