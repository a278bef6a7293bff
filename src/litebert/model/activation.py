"""The activation functions, by their published names."""

from __future__ import annotations

from typing import Final

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

__all__ = ["GELU_FORMS", "activate"]

GELU_FORMS: Final = {"gelu": "none", "gelu_new": "tanh"}
"""Published name of an activation -> what PyTorch calls it."""


def activate(inner: Float[Tensor, "*any"], name: str) -> Float[Tensor, "*any"]:
    """Apply an activation by its published name: `gelu` (erf), `gelu_new` (tanh) or `relu`."""
    if name == "relu":
        return functional.relu(inner)
    return functional.gelu(inner, approximate=GELU_FORMS[name])
