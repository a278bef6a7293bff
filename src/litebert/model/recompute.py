"""GELU and the projection after it, holding one matrix for the backward pass instead of two.

The output of the activation is computed again in the backward pass: an elementwise function beside
three matrix products costs next to nothing, and a quarter of what a depth holds is saved.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

__all__ = ["can_recompute", "gelu_linear"]

_aten = torch.ops.aten


def can_recompute(inner: Tensor, weight: Tensor) -> bool:
    """Whether `gelu_linear` may stand for the plain functions: packed, training, no autocast."""
    return (
        inner.ndim == 2
        and inner.dtype == weight.dtype
        and inner.requires_grad
        and torch.is_grad_enabled()
        and not torch.is_autocast_enabled(inner.device.type)
        and not torch.compiler.is_compiling()
    )


def gelu_linear(
    inner: Float[Tensor, "T I"],
    weight: Float[Tensor, "H I"],
    bias: Float[Tensor, " H"],
    approximate: str,
) -> Float[Tensor, "T H"]:
    """Return `linear(gelu(inner), weight, bias)`; can be differentiated once.

    Args:
        inner: input of the activation.
        weight: of the projection.
        bias: of the projection.
        approximate: "tanh" or "none", as `torch.nn.functional.gelu`.
    """
    return cast(Tensor, _GeluLinear.apply(inner, weight, bias, approximate))


class _GeluLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inner: Tensor, weight: Tensor, bias: Tensor, approximate: str) -> Tensor:
        ctx.save_for_backward(inner, weight)
        ctx.approximate = approximate
        return functional.linear(functional.gelu(inner, approximate=approximate), weight, bias)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator hides names
        ctx: Any, *grads: Tensor
    ) -> Any:
        inner, weight = ctx.saved_tensors
        (grad,) = grads
        active = functional.gelu(inner, approximate=ctx.approximate)
        grad_weight = grad.t().mm(active) if ctx.needs_input_grad[1] else None
        grad_active = torch.mm(grad, weight, out=active)
        grad_inner = _aten.gelu_backward(grad_active, inner, approximate=ctx.approximate)
        return grad_inner, grad_weight, grad.sum(0) if ctx.needs_input_grad[2] else None, None
