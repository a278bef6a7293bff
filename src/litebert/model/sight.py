"""Where attention looks and what positions mean to it: rotation, relative positions, a window.

A `Sight` is made once for a forward pass and serves all its depths. Without any of these options
there is none, and attention is that of `attend.py` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from litebert.model.attend import attend, over_buckets, repeat_heads
from litebert.model.disentangled import RelativeEmbeddings, RelativeTerms, relative_bias
from litebert.model.head_layout import HeadLayout
from litebert.model.local import Band, make_band, window_mask
from litebert.model.packing import Bucket, Packing, gather_rows, scatter_rows
from litebert.model.rotary import Rotation, rotate
from litebert.model.varlen import VARLEN

__all__ = ["Sight", "look", "look_probabilities"]

Layout = Packing | Tensor | None
"""A packing for packed tokens; an attention mask [B, 1, 1, S], or None, for a padded batch."""


@dataclass(eq=False, slots=True)
class Sight:
    """What the positions of one batch mean to attention.

    Attributes:
        position_ids: packed [T]; padded [S] or [B, S].
        counted: whether positions are simply the place of each token in its sequence.
        rotation: for rotary positions.
        relative: for disentangled attention.
        half: tokens to each side that local depths see; None without a window.
    """

    position_ids: Tensor
    counted: bool = False
    rotation: Rotation | None = None
    relative: RelativeEmbeddings | None = None
    half: int | None = None
    _band: Band | None = None
    _indices: dict[object, Tensor] = field(default_factory=dict[object, Tensor])

    def band(self, packing: Packing) -> Band | None:
        """Return the blocks of local attention; None where the window covers every sequence."""
        if self.half is None or packing.max_length <= self.half + 1:
            return None
        if self._band is None:
            self._band = make_band(packing, self.half)
        return self._band

    def index(self, key: object, query_places: Tensor, key_places: Tensor) -> Tensor:
        """Return the rows of relative positions, computed once for each `key`."""
        if key not in self._indices and self.relative is not None:
            self._indices[key] = self.relative.index(query_places, key_places)
        return self._indices[key]

    def bucket_places(self, bucket: Bucket | None, packing: Packing) -> Tensor:
        """Return the positions of a bucket, [b, w], or [1, w] where all of it has the same."""
        width = packing.max_length if bucket is None else bucket.shape[1]
        if self.counted:
            return torch.arange(width, device=self.position_ids.device)[None]
        if bucket is None:
            return self.position_ids.view(packing.num_sequences, width)
        rows = gather_rows(self.position_ids, bucket.rows)
        size = bucket.shape[0] * width
        return scatter_rows(rows, bucket.slots, size).view(bucket.shape)


def look(
    qkv: Float[Tensor, "*tokens W"],
    heads: HeadLayout,
    layout: Layout,
    sight: Sight,
    terms: RelativeTerms | None,
    *,
    is_local: bool,
    dropout_prob: float = 0.0,
) -> Float[Tensor, "*tokens H"]:
    """Return the attention output of packed or padded tokens.

    Args:
        qkv: query, key and value side by side, [T, W] or [B, S, W].
        heads: how they are divided into heads.
        layout: bounds of the sequences, or mask of a padded batch.
        sight: what positions mean.
        terms: projected relative positions, for disentangled attention.
        is_local: whether this depth sees its window only.
        dropout_prob: dropout of the attention probabilities, in [0, 1).
    """
    qkv = _rotated(qkv, heads, sight)
    if not isinstance(layout, Packing):
        return _look_padded(qkv, heads, layout, sight, terms, is_local, dropout_prob)
    if not layout.max_length:
        return qkv[:, : heads.widths[0]]
    band = sight.band(layout) if is_local else None
    if (
        band is not None
        and terms is None
        and not dropout_prob
        and _has_window_kernel(qkv, heads, band)
    ):
        return VARLEN.attend(qkv, heads, layout, band.half)
    if band is not None:
        return _look_in_band(qkv, heads, band, sight, terms, dropout_prob)
    if terms is None:
        return attend(qkv, heads, layout, dropout_prob=dropout_prob)

    def attend_one(padded: Tensor, bucket: Bucket | None) -> Tensor:
        places = sight.bucket_places(bucket, layout)
        index = sight.index(bucket, places, places)
        mask = None if bucket is None else bucket.mask
        return _attend_heads(*_split(padded, heads), mask, terms, index, dropout_prob)

    return over_buckets(qkv, heads, layout, attend_one)


def look_probabilities(
    qkv: Float[Tensor, "T W"],
    heads: HeadLayout,
    packing: Packing,
    sight: Sight | None,
    terms: RelativeTerms | None,
    *,
    is_local: bool,
) -> tuple[Float[Tensor, "A n n"], ...]:
    """Return the attention probabilities of each sequence; arguments as `look`."""
    scale, half = heads.size**-0.5, None
    places = packing.position_ids
    if sight is not None:
        qkv, places = _rotated(qkv, heads, sight), sight.position_ids
        half = sight.half if is_local else None
    query, key, _ = _split(qkv[None], heads)  # [1, A, T, D]
    found: list[Tensor] = []
    pieces = (query.split(packing.lengths, 2), key.split(packing.lengths, 2))
    for q, k, at in zip(*pieces, places.split(packing.lengths), strict=True):
        scores = q @ k.transpose(-1, -2)  # [1, A, n, n]
        if terms is not None and sight is not None and sight.relative is not None:
            scale = terms.scale(heads.size)
            index = sight.relative.index(at[None], at[None])
            scores = scores + relative_bias(q, k, terms, index)
        scores = scores * scale
        if half is not None:
            near = window_mask(None, half, scores.shape[-1], scores.device)
            scores = scores.masked_fill(~near, -torch.inf)
        found.append(torch.softmax(scores, dim=-1)[0])
    return tuple(found)


def _rotated(qkv: Tensor, heads: HeadLayout, sight: Sight) -> Tensor:
    if sight.rotation is None:
        return qkv
    return rotate(qkv, heads.heads + heads.key_value_heads, heads.size, sight.rotation)


def _split(qkv: Tensor, heads: HeadLayout) -> tuple[Tensor, Tensor, Tensor]:
    """[B, S, W] -> query, key and value, [B, A, S, D] each."""
    query, key, value = (
        repeat_heads(part.unflatten(-1, (-1, heads.size)), heads.heads).transpose(1, 2)
        for part in qkv.split(heads.widths, dim=-1)
    )
    return query, key, value


def _look_padded(
    qkv: Tensor,
    heads: HeadLayout,
    mask: Tensor | None,
    sight: Sight,
    terms: RelativeTerms | None,
    is_local: bool,
    dropout_prob: float,
) -> Tensor:
    index = None
    if terms is not None:
        places = sight.position_ids
        places = places[None] if places.ndim == 1 else places
        index = sight.index(None, places, places)
    if is_local and sight.half is not None:
        near = window_mask(mask, sight.half, qkv.shape[1], qkv.device)
        mask = _both(near, mask)
    return _attend_heads(*_split(qkv, heads), mask, terms, index, dropout_prob)


def _has_window_kernel(qkv: Tensor, heads: HeadLayout, band: Band) -> bool:
    """Whether the kernel for packed sequences also knows windows, on this device."""

    def plain(probe: Tensor, packing: Packing, half: int | None) -> Tensor:
        narrow = make_band(packing, half or band.half)
        return _look_in_band(probe, heads, narrow, Sight(packing.position_ids), None, 0.0)

    return VARLEN.is_usable(qkv, heads, plain, windowed=True)


def _look_in_band(
    qkv: Tensor,
    heads: HeadLayout,
    band: Band,
    sight: Sight,
    terms: RelativeTerms | None,
    dropout_prob: float,
) -> Tensor:
    query, key, value = qkv.split(heads.widths, dim=-1)
    query, key, value = (
        repeat_heads(part.unflatten(-1, (-1, heads.size)), heads.heads).transpose(1, 2)
        for part in (band.queries(query), band.keys(key), band.keys(value))
    )  # [G, A, c, D], then [G, A, 3 c, D] twice
    index = None
    if terms is not None:
        places = sight.position_ids
        index = sight.index(band, band.queries(places), band.keys(places))
    context = _attend_heads(query, key, value, band.mask, terms, index, dropout_prob)
    return band.packed(context, qkv.shape[0])


def _attend_heads(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    terms: RelativeTerms | None,
    index: Tensor | None,
    dropout_prob: float,
) -> Tensor:
    """[B, A, Q, D], [B, A, K, D] twice -> [B, Q, H]."""
    scale = None
    if terms is not None and index is not None:
        scale = terms.scale(query.shape[-1])
        bias = relative_bias(query, key, terms, index) * scale
        mask = bias if mask is None else _masked(bias, mask)
    output = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout_prob, scale=scale
    )
    return output.transpose(1, 2).flatten(2)


def _masked(bias: Tensor, mask: Tensor) -> Tensor:
    """Add a mask to scores; hidden ones get a number so low that a whole row of them stays finite."""
    if mask.dtype == torch.bool:
        return bias.masked_fill(~mask, torch.finfo(bias.dtype).min / 2)
    return bias + mask


def _both(near: Tensor, mask: Tensor | None) -> Tensor:
    """The window and the mask of a padded batch."""
    if mask is None:
        return near
    return near & mask if mask.dtype == torch.bool else _masked(mask, near)
