"""LayerNorm as every part of the model uses it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["LayerNorm", "NormChange"]


class LayerNorm(nn.LayerNorm):
    """LayerNorm over the last dimension, always computed in float32.

    The published epsilon 1e-12 is 0 in half precision, and the variance of wide activations
    overflows it. Source: official `modeling.py`, `layer_norm`.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - name of the base class
        """Return the normalised input; float32 weights give a float32 result."""
        return self.scaled(input, self.weight, self.bias)

    def scaled(self, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """As `forward`, with a given gain and bias."""
        if hidden.dtype == weight.dtype == torch.float32:
            return functional.layer_norm(hidden, self.normalized_shape, weight, bias, self.eps)
        if weight.dtype == torch.float64:
            return functional.layer_norm(
                hidden.double(), self.normalized_shape, weight, bias, self.eps
            )
        with torch.autocast(hidden.device.type, enabled=False):
            result = functional.layer_norm(
                hidden.float(), self.normalized_shape, weight.float(), bias.float(), self.eps
            )
        return result.to(weight.dtype)


class NormChange(nn.Module):
    """What one step adds to gain and bias of a LayerNorm that depths share; 0 at the start."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))
