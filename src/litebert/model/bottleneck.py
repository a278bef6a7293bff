"""Bottleneck adapters: a small network after each sub-layer, for every depth its own."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from litebert.model.activation import activate
from litebert.model.config import AlbertConfig

__all__ = ["Bottleneck"]


class Bottleneck(nn.Module):
    """`x + up(activation(down(x)))`, H -> m -> H with biases; x itself at the start, since `up` is 0.

    It stands between the dropout of a sub-layer and its residual. Source: Houlsby et al. 2019,
    Parameter-Efficient Transfer Learning, section 2.1 and figure 2.
    Differs from: `up` starts at small random numbers there; the activation is that of the model here.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        hidden, size = config.hidden_size, config.litebert.adapter_size
        std = config.initializer_range
        # No nn.Linear: that of a model is initialised as a whole, and `up` has to stay 0.
        self.down = nn.Parameter(torch.empty(size, hidden))
        self.down_bias = nn.Parameter(torch.zeros(size))
        self.up = nn.Parameter(torch.zeros(hidden, size))
        self.up_bias = nn.Parameter(torch.zeros(hidden))
        self.activation = config.hidden_act
        nn.init.trunc_normal_(self.down, std=std, a=-2 * std, b=2 * std)

    def forward(self, inputs: Float[Tensor, "*tokens H"]) -> Float[Tensor, "*tokens H"]:
        """Return the inputs with the update."""
        inner = activate(functional.linear(inputs, self.down, self.down_bias), self.activation)
        return inputs + functional.linear(inner, self.up, self.up_bias)
