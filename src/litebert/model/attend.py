"""Scaled dot-product attention within each sequence of a packed batch, and of a plain padded one.

Multi-head, grouped-query and multi-query attention differ only in the number of key-value heads.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from litebert.model.packing import Packing, gather_rows, scatter_rows

__all__ = ["attend", "attend_padded", "attention_probabilities"]


def attend(
    query: Float[Tensor, "T A D"],
    key: Float[Tensor, "T K D"],
    value: Float[Tensor, "T K D"],
    packing: Packing,
    *,
    dropout_prob: float = 0.0,
) -> Float[Tensor, "T AD"]:
    """Return the attention output of packed tokens; each token sees its own sequence only.

    Args:
        query: A query heads of size D.
        key: K key heads; query head a uses key head `a * K // A`.
        value: as `key`.
        packing: bounds of the sequences.
        dropout_prob: dropout of the attention probabilities, in [0, 1).
    """
    if packing.is_rectangular:
        shape = (packing.num_sequences, packing.max_length)
        return _attend_batch(query, key, value, shape, None, dropout_prob).flatten(0, 1)
    result: Tensor | None = None
    for bucket in packing.buckets:
        size = bucket.shape[0] * bucket.shape[1]
        q, k, v = (
            scatter_rows(gather_rows(part, bucket.rows), bucket.slots, size)
            for part in (query, key, value)
        )
        padded = _attend_batch(q, k, v, bucket.shape, bucket.mask, dropout_prob).flatten(0, 1)
        part = scatter_rows(gather_rows(padded, bucket.slots), bucket.rows, query.shape[0])
        result = part if result is None else result + part
    return query.flatten(1) * 0 if result is None else result


def attend_padded(
    query: Float[Tensor, "B S A D"],
    key: Float[Tensor, "B S K D"],
    value: Float[Tensor, "B S K D"],
    mask: Tensor | None,
    *,
    dropout_prob: float = 0.0,
) -> Float[Tensor, "B S AD"]:
    """Return the attention output of a padded batch.

    Args:
        query: A query heads of size D.
        key: K key heads.
        value: as `key`.
        mask: True (or 0.0 if additive) where a key counts, [B, 1, 1, S]; None: all count.
        dropout_prob: dropout of the attention probabilities, in [0, 1).
    """
    heads = query.shape[2]
    output = functional.scaled_dot_product_attention(
        query.transpose(1, 2),  # [B, A, S, D]
        _repeat_heads(key, heads).transpose(1, 2),
        _repeat_heads(value, heads).transpose(1, 2),
        attn_mask=mask,
        dropout_p=dropout_prob,
    )
    return output.transpose(1, 2).flatten(2)  # [B, S, A * D]


def attention_probabilities(
    query: Float[Tensor, "T A D"], key: Float[Tensor, "T K D"], packing: Packing
) -> tuple[Float[Tensor, "A n n"], ...]:
    """Return the attention probabilities of each sequence of a packed batch, [A, n, n] each."""
    key = _repeat_heads(key, query.shape[1])
    scale = 1.0 / math.sqrt(query.shape[-1])
    return tuple(
        torch.softmax(q.permute(1, 0, 2) @ k.permute(1, 2, 0) * scale, dim=-1)  # [A, n, n]
        for q, k in zip(query.split(packing.lengths), key.split(packing.lengths), strict=True)
    )


def _attend_batch(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    shape: tuple[int, int],
    mask: Tensor | None,
    dropout_prob: float,
) -> Tensor:
    q, k, v = (part.unflatten(0, shape) for part in (query, key, value))  # [B, S, heads, D]
    return attend_padded(q, k, v, mask, dropout_prob=dropout_prob)


def _repeat_heads(part: Tensor, heads: int) -> Tensor:
    """[..., K, D] -> [..., A, D], each key-value head for its group of query heads."""
    if part.shape[-2] == heads:
        return part
    return part.repeat_interleave(heads // part.shape[-2], dim=-2)
