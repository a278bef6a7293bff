"""Local attention: a token sees the tokens of its sequence at most `half` places away.

The packed tokens are cut into blocks of `half`; a block looks at itself and its two neighbours, and a
mask hides what is too far or of another sequence. Work and memory grow with T * window, not n * n.
Source: Beltagy et al. 2020, Longformer, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor
from torch.nn import functional

from litebert.model.packing import Packing

__all__ = ["Band", "make_band", "window_mask"]

LEAST_BLOCK: Final = 16
"""Blocks are at least this wide, so that a tiny window does not make tiny products."""


@dataclass(frozen=True, eq=False, slots=True)
class Band:
    """Packed tokens as blocks, and which keys each query of a block may see.

    Attributes:
        half: tokens to each side that are seen.
        width: tokens of a block, c.
        blocks: number of blocks, G.
        mask: True where a key counts, [G, 1, c, 3 c].
    """

    half: int
    width: int
    blocks: int
    mask: Tensor

    def queries(self, rows: Shaped[Tensor, "T ..."]) -> Shaped[Tensor, "G c ..."]:
        """Return packed rows cut into blocks; the last is filled up with zeros."""
        return self._filled(rows, 0, 0).unflatten(0, (self.blocks, self.width))

    def keys(self, rows: Shaped[Tensor, "T ..."]) -> Shaped[Tensor, "G 3c ..."]:
        """Return for each block the rows of its left neighbour, of itself and of its right one."""
        padded = self._filled(rows, 1, 1).unflatten(0, (self.blocks + 2, self.width))
        return torch.cat([padded[:-2], padded[1:-1], padded[2:]], dim=1)

    def packed(self, blocks: Shaped[Tensor, "G c ..."], tokens: int) -> Shaped[Tensor, "T ..."]:
        """Return blocks as packed rows."""
        return blocks.flatten(0, 1)[:tokens]

    def _filled(self, rows: Tensor, left: int, right: int) -> Tensor:
        missing = self.blocks * self.width - rows.shape[0]
        pad = (left * self.width, missing + right * self.width)
        return functional.pad(rows, (0, 0) * (rows.ndim - 1) + pad)


def make_band(packing: Packing, half: int) -> Band:
    """Return the blocks of packed sequences for windows of `half` tokens to each side, >= 1."""
    width = max(half, LEAST_BLOCK)
    tokens = packing.num_tokens
    blocks = -(-tokens // width)
    plan = Band(half, width, blocks, torch.empty(0))
    # 0 stands for what fills the last block and both ends; those rows see each other, which is no harm.
    owner = packing.sequence_ids + 1
    ends = torch.arange(blocks, device=owner.device)[:, None] * width
    places = torch.arange(width, device=owner.device)
    key_places = ends + torch.arange(-width, 2 * width, device=owner.device)  # [G, 3 c]
    distance = (ends + places)[:, :, None] - key_places[:, None, :]
    same = plan.queries(owner)[:, :, None] == plan.keys(owner)[:, None, :]
    return Band(half, width, blocks, (same & (distance.abs() <= half))[:, None])


def window_mask(
    mask: Tensor | None, half: int, length: int, device: torch.device
) -> Bool[Tensor, "_ 1 S S"]:
    """Return which keys are within the window of each query of a padded batch.

    Places are counted over real tokens, so that padding and holes are no distance.

    Args:
        mask: True (or near 0 if additive) where a real token stands, [B, 1, 1, S]; None: everywhere.
        half: tokens to each side, >= 1.
        length: columns S.
        device: where the result goes.
    """
    if mask is None:
        places = torch.arange(length, device=device)[None, None, None]
    else:
        real = mask if mask.dtype == torch.bool else mask > -1.0
        places = real.to(torch.int64).cumsum(-1)  # [B, 1, 1, S]
    return (places.transpose(-1, -2) - places).abs() <= half
