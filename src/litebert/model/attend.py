"""Scaled dot-product attention within each sequence of a packed batch.

On the CPU one small product runs per sequence: no padding and no mask. On CUDA half precision runs
one kernel for all sequences (`varlen.py`). Elsewhere sequences of similar length share a padded batch.
Multi-head, grouped-query and multi-query attention differ only
in the number of key-value heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from litebert.model.head_layout import HeadLayout
from litebert.model.packing import Bucket, Packing, gather_rows, scatter_rows
from litebert.model.varlen import VARLEN

__all__ = [
    "HeadLayout",
    "attend",
    "attend_buckets",
    "attend_padded",
    "over_buckets",
    "repeat_heads",
]

_aten = torch.ops.aten
FLASH_FROM: Final = 96
"""Sequences this long use the blocked kernel; below, plain batched products are faster (measured)."""

SEQUENTIAL_DEVICES: Final = frozenset({"cpu"})
"""Where one product for each sequence costs less than padding."""


def attend(
    qkv: Float[Tensor, "T W"], layout: HeadLayout, packing: Packing, *, dropout_prob: float = 0.0
) -> Float[Tensor, "T H"]:
    """Return the attention output of packed tokens; each token sees its own sequence only.

    Args:
        qkv: query, key and value side by side.
        layout: how they are divided into heads.
        packing: bounds of the sequences.
        dropout_prob: dropout of the attention probabilities, in [0, 1).
    """
    if not packing.max_length:
        return qkv[:, : layout.widths[0]]
    if qkv.device.type in SEQUENTIAL_DEVICES:
        if packing.is_rectangular and not dropout_prob:
            return attend_buckets(qkv, layout, packing)
        if layout.key_value_heads != layout.heads:
            qkv = _expand_groups(qkv, layout)
        context = _PerSequence.apply(qkv, layout.heads, packing.lengths, dropout_prob)
        return cast(Tensor, context)

    def plain(probe: Tensor, packing: Packing, _: int | None) -> Tensor:
        return attend_buckets(probe, layout, packing)

    if not dropout_prob and VARLEN.is_usable(qkv, layout, plain):
        return VARLEN.attend(qkv, layout, packing)
    return attend_buckets(qkv, layout, packing, dropout_prob=dropout_prob)


def attend_buckets(
    qkv: Float[Tensor, "T W"], layout: HeadLayout, packing: Packing, *, dropout_prob: float = 0.0
) -> Float[Tensor, "T H"]:
    """As `attend`, by way of small padded batches of similar length: few, large launches."""

    def attend_one(padded: Tensor, bucket: Bucket | None) -> Tensor:
        mask = None if bucket is None else bucket.mask
        return attend_padded(padded, layout, mask, dropout_prob=dropout_prob)

    return over_buckets(qkv, layout, packing, attend_one)


def over_buckets(
    qkv: Float[Tensor, "T W"],
    layout: HeadLayout,
    packing: Packing,
    attend_one: Callable[[Tensor, Bucket | None], Tensor],
) -> Float[Tensor, "T H"]:
    """Return what `attend_one` makes of each bucket [b, w, W]; None stands for the whole, unpadded."""
    if packing.is_rectangular:
        padded = qkv.view(packing.num_sequences, packing.max_length, -1)
        return attend_one(padded, None).flatten(0, 1)
    result = qkv.new_zeros(qkv.shape[0], layout.widths[0])
    for bucket in packing.buckets:
        size = bucket.shape[0] * bucket.shape[1]
        padded = scatter_rows(gather_rows(qkv, bucket.rows), bucket.slots, size)
        part = attend_one(padded.unflatten(0, bucket.shape), bucket)
        result = result.index_copy(0, bucket.rows, gather_rows(part.flatten(0, 1), bucket.slots))
    return result


def attend_padded(
    qkv: Float[Tensor, "B S W"],
    layout: HeadLayout,
    mask: Tensor | None,
    *,
    dropout_prob: float = 0.0,
) -> Float[Tensor, "B S H"]:
    """Return the attention output of a padded batch.

    Args:
        qkv: query, key and value side by side.
        layout: how they are divided into heads.
        mask: True (or 0.0 if additive) where a key counts, [B, 1, 1, S]; None: all count.
        dropout_prob: dropout of the attention probabilities, in [0, 1).
    """
    query, key, value = (
        repeat_heads(part.unflatten(-1, (-1, layout.size)), layout.heads).transpose(1, 2)
        for part in qkv.split(layout.widths, dim=-1)
    )  # [B, A, S, D]
    output = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout_prob
    )
    return output.transpose(1, 2).flatten(2)  # [B, S, H]


def repeat_heads(part: Float[Tensor, "*any K D"], heads: int) -> Float[Tensor, "*any A D"]:
    """Return [..., K, D] as [..., A, D], each key-value head for its group of query heads."""
    if part.shape[-2] == heads:
        return part
    return part.repeat_interleave(heads // part.shape[-2], dim=-2)


def _expand_groups(qkv: Tensor, layout: HeadLayout) -> Tensor:
    """[T, W] -> [T, 3 H]: each key-value head repeated for its group of query heads."""
    query, key, value = qkv.split(layout.widths, dim=-1)
    return torch.cat(
        [
            query,
            *(
                repeat_heads(part.unflatten(-1, (-1, layout.size)), layout.heads).flatten(1)
                for part in (key, value)
            ),
        ],
        dim=-1,
    )


class _PerSequence(torch.autograd.Function):
    """Attention of one sequence after another, on views of the packed tensors."""

    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, heads: int, lengths: tuple[int, ...], dropout_prob: float
    ) -> Tensor:
        context = qkv.new_empty(qkv.shape[0], qkv.shape[1] // 3)
        saved: list[Tensor] = []
        views = (*_by_head(qkv, 3 * heads).chunk(3), _by_head(context, heads))
        for query, key, value, target in _sequences(views, lengths):
            output, *kept = _forward(query, key, value, dropout_prob)
            target.copy_(output)
            saved.extend(kept)
        ctx.save_for_backward(qkv, context, *saved)
        ctx.extra = (heads, lengths, dropout_prob)
        return context

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the decorator hides names
        ctx: Any, *grads: Tensor
    ) -> Any:
        qkv, context, *saved = ctx.saved_tensors
        heads, lengths, dropout_prob = ctx.extra
        grad_qkv = torch.empty_like(qkv)
        views = (
            *_by_head(qkv, 3 * heads).chunk(3),
            _by_head(context, heads),
            _by_head(grads[0].contiguous(), heads),
            *_by_head(grad_qkv, 3 * heads).chunk(3),
        )
        kept = iter(saved)
        for *inputs, output, grad, to_query, to_key, to_value in _sequences(views, lengths):
            parts = _backward(inputs, output, grad, kept, dropout_prob)
            to_query.copy_(parts[0])
            to_key.copy_(parts[1])
            to_value.copy_(parts[2])
        return grad_qkv, None, None, None


def _by_head(rows: Tensor, heads: int) -> Tensor:
    """[T, heads * D] -> [heads, T, D], a view."""
    return rows.view(rows.shape[0], heads, -1).transpose(0, 1)


def _sequences(views: tuple[Tensor, ...], lengths: tuple[int, ...]) -> Iterator[tuple[Tensor, ...]]:
    """The views [A, T, D] cut into [A, n, D] for each sequence that is not empty."""
    pieces = [view.split(lengths, dim=1) for view in views]
    for length, *parts in zip(lengths, *pieces, strict=True):
        if length:
            yield tuple(parts)


def _forward(query: Tensor, key: Tensor, value: Tensor, dropout_prob: float) -> list[Tensor]:
    """Output [A, n, D], then what the backward pass needs."""
    if not dropout_prob and query.shape[1] >= FLASH_FROM:
        output, log_sum = _aten._scaled_dot_product_flash_attention_for_cpu(
            query[None], key[None], value[None], 0.0, False
        )
        return [output[0], log_sum]
    scale = query.shape[2] ** -0.5
    scores = torch.baddbmm(_nothing(query), query, key.transpose(1, 2), beta=0, alpha=scale)
    probs = torch.softmax(scores, dim=-1)  # [A, n, n]
    if not dropout_prob:
        return [torch.bmm(probs, value), probs]
    mask = torch.empty_like(probs).bernoulli_(1.0 - dropout_prob).div_(1.0 - dropout_prob)
    return [torch.bmm(probs * mask, value), probs, mask]


def _backward(
    inputs: list[Tensor], output: Tensor, grad: Tensor, kept: Iterator[Tensor], dropout_prob: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value, [A, n, D] each."""
    query, key, value = inputs
    if not dropout_prob and query.shape[1] >= FLASH_FROM:
        one, two, three = _aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad[None], query[None], key[None], value[None], output[None], next(kept), 0.0, False
        )
        return one[0], two[0], three[0]
    scale = query.shape[2] ** -0.5
    probs = next(kept)
    mask = next(kept) if dropout_prob else None
    dropped = probs if mask is None else probs * mask
    grad_probs = torch.bmm(grad, value.transpose(1, 2))
    if mask is not None:
        grad_probs.mul_(mask)
    grad_scores = _aten._softmax_backward_data(grad_probs, probs, -1, probs.dtype)
    nothing = _nothing(query)
    return (
        torch.baddbmm(nothing, grad_scores, key, beta=0, alpha=scale),
        torch.baddbmm(nothing, grad_scores.transpose(1, 2), query, beta=0, alpha=scale),
        torch.bmm(dropped.transpose(1, 2), grad),
    )


def _nothing(like: Tensor) -> Tensor:
    """What `baddbmm` adds zero times."""
    return like.new_empty(1, 1, 1)
