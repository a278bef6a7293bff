"""LayerNorm as every part of the model uses it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["LayerNorm"]


class LayerNorm(nn.LayerNorm):
    """LayerNorm over the last dimension, always computed in float32.

    The published epsilon 1e-12 is 0 in half precision, and the variance of wide activations
    overflows it. Source: official `modeling.py`, `layer_norm`.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - name of the base class
        """Return the normalised input; float32 weights give a float32 result."""
        weight, bias = self.weight, self.bias
        if input.dtype == weight.dtype == torch.float32:
            return functional.layer_norm(input, self.normalized_shape, weight, bias, self.eps)
        if weight.dtype == torch.float64:
            return functional.layer_norm(
                input.double(), self.normalized_shape, weight, bias, self.eps
            )
        with torch.autocast(input.device.type, enabled=False):
            result = functional.layer_norm(
                input.float(), self.normalized_shape, weight.float(), bias.float(), self.eps
            )
        return result.to(weight.dtype)
