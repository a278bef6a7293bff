"""Rotary positions: queries and keys are turned by their position, so scores see distances only.

Halves convention: column c of a head is paired with column c + D/2 (as in GPT-NeoX), not with its
neighbour. Source: Su et al. 2021, RoFormer, section 3.2.2.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Rotation", "rotate", "rotation"]

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines of the angles, [*tokens, 1, D/2] each."""


def rotation(
    position_ids: Int[Tensor, "*tokens"], size: int, base: float, *, double: bool = False
) -> Rotation:
    """Return cosine and sine of `position / base ** (2 c / D)` for c in [0, D/2).

    Args:
        position_ids: position of each token; only differences matter.
        size: size of a head D, even.
        base: wavelength of the slowest pair over 2 pi, roughly.
        double: compute in float64, for models that do.
    """
    dtype = torch.float64 if double else torch.float32
    columns = torch.arange(0, size, 2, dtype=torch.float64, device=position_ids.device)
    frequency = (base ** (-columns / size)).to(dtype)
    angles = position_ids.to(dtype)[..., None, None] * frequency  # [*tokens, 1, D/2]
    return angles.cos(), angles.sin()


def rotate(
    qkv: Float[Tensor, "*tokens W"], turned: int, size: int, by: Rotation
) -> Float[Tensor, "*tokens W"]:
    """Return query, key and value side by side with the first `turned` heads rotated.

    Half precision is rotated in float32 and rounded once.

    Args:
        qkv: query, key and value side by side.
        turned: number of query and key heads, A + K.
        size: size of a head D.
        by: result of `rotation` for the same tokens.
    """
    cosine, sine = by
    width = turned * size
    heads = qkv[..., :width].unflatten(-1, (turned, size)).to(cosine.dtype)
    one, two = heads.chunk(2, dim=-1)  # [*tokens, A + K, D/2]
    rotated = torch.cat([one * cosine - two * sine, two * cosine + one * sine], dim=-1)
    return torch.cat([rotated.flatten(-2).to(qkv.dtype), qkv[..., width:]], dim=-1)
