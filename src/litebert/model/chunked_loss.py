"""Softmax cross-entropy over a large vocabulary, a few rows at a time.

The full matrix of logits, rows x V, never exists, neither forward nor backward: each chunk of
rows gives its loss and its gradients at once, and only those are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from litebert.errors import DataError

__all__ = ["ChunkedScores", "chunked_cross_entropy", "chunked_scores"]

_CHUNK_LOGITS: Final = 1 << 22
"""Logits that exist at one time, 16 MB in float32."""
_MIN_CHUNK_ROWS: Final = 16
"""Matrix products of fewer rows are slow."""
_DEVICE_CHUNK_LOGITS: Final = 1 << 26
"""The same on an accelerator (256 MB), where large products pay."""


@dataclass(frozen=True, slots=True)
class ChunkedScores:
    """What is known of each row without its logits.

    Attributes:
        loss: [P] cross-entropy in nats, float32 (or float64).
        best: [P] the likeliest id.
        drawn: [P] an id drawn from the distribution; None if no uniforms were given.
    """

    loss: Tensor
    best: Tensor
    drawn: Tensor | None


def chunked_cross_entropy(
    inner: Float[Tensor, "P E"],
    table: Float[Tensor, "V E"],
    bias: Float[Tensor, " V"],
    targets: Int[Tensor, " P"],
    *,
    chunk_rows: int | None = None,
) -> Float[Tensor, ""]:
    """Return the summed cross-entropy of `softmax(inner @ table.T + bias)`, in nats.

    Gradients flow to `inner`, `table` and `bias`; a second derivative does not exist. Under
    autocast the products are computed in its type, softmax and sums in float32.

    Args:
        inner: one row for each target.
        table: one row for each id.
        bias: one number for each id.
        targets: ids in [0, V).
        chunk_rows: rows at a time, >= 1; None: as many as make about 4 million logits.

    Raises:
        DataError: a target outside the vocabulary. Checked on the CPU; a CUDA device stops by
            itself.
    """
    _check(targets, table)
    total: Any = _ChunkedCrossEntropy.apply(
        inner, table, bias, targets, chunk_rows or _rows(len(inner), table), _product_dtype(inner)
    )
    return total


@torch.no_grad()
def chunked_scores(
    inner: Float[Tensor, "P E"],
    table: Float[Tensor, "V E"],
    bias: Float[Tensor, " V"],
    targets: Int[Tensor, " P"],
    uniforms: Float[Tensor, " P"] | None = None,
) -> ChunkedScores:
    """Return the loss and the likeliest id of each row, and one drawn by each uniform number.

    Drawing inverts the cumulative distribution: the first id whose cumulative probability passes
    the number, so the same number and the same logits give the same id.

    Args:
        inner: one row for each target.
        table: one row for each id.
        bias: one number for each id.
        targets: ids in [0, V).
        uniforms: numbers in [0, 1).

    Raises:
        DataError: a target outside the vocabulary.
    """
    _check(targets, table)
    loss: list[Tensor] = []
    best: list[Tensor] = []
    drawn: list[Tensor] = []
    product = _product_dtype(inner)
    weights = table.to(product)
    rows = _rows(len(inner), table)
    for start in range(0, len(inner), rows):
        part = slice(start, start + rows)
        logits = _logits(inner[part].to(product), weights, bias)
        wanted = logits.gather(1, targets[part, None])[:, 0]
        loss.append(logits.logsumexp(1) - wanted)
        best.append(logits.argmax(1))
        if uniforms is not None:
            summed = logits.softmax(1).cumsum(1)
            # Rounding leaves the last sum a little off 1; scaled by it, no number falls beyond.
            level = uniforms[part, None].to(summed.dtype) * summed[:, -1:]
            drawn.append(torch.searchsorted(summed, level, right=True)[:, 0])
    empty = targets.new_zeros(0)
    return ChunkedScores(
        torch.cat(loss) if loss else inner.new_zeros(0),
        torch.cat(best) if best else empty,
        None
        if uniforms is None
        else (torch.cat(drawn).clamp_max(len(table) - 1) if drawn else empty),
    )


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inner: Tensor,
        table: Tensor,
        bias: Tensor,
        targets: Tensor,
        rows: int,
        product: torch.dtype,
    ) -> Tensor:
        weights, narrow = table.detach().to(product), inner.detach().to(product)
        sums = torch.float64 if inner.dtype == torch.float64 else torch.float32
        total = torch.zeros((), dtype=sums, device=inner.device)
        wants_inner, wants_table, wants_bias = ctx.needs_input_grad[:3]
        inner_grad = torch.empty_like(narrow) if wants_inner else None
        table_grad = torch.empty_like(table, dtype=sums) if wants_table else None
        if table_grad is not None and not len(inner):
            table_grad.zero_()
        bias_grad = torch.zeros_like(bias, dtype=sums) if wants_bias else None
        for start in range(0, len(inner), rows):
            part = slice(start, start + rows)
            logits, wanted = _logits(narrow[part], weights, bias), targets[part, None]
            top = logits.amax(1, keepdim=True)
            total -= (logits.gather(1, wanted) - top).sum()
            slopes = logits.sub_(top).exp_()  # [p, V], becomes probabilities, then the gradient
            norm = slopes.sum(1, keepdim=True)
            total += norm.log().sum()
            if not (wants_inner or wants_table or wants_bias):
                continue
            slopes.div_(norm)
            slopes.scatter_add_(1, wanted, torch.full_like(norm, -1.0))
            if bias_grad is not None:
                bias_grad += slopes.sum(0)
            slopes = slopes.to(product)
            with torch.autocast(inner.device.type, enabled=False):
                if inner_grad is not None:
                    torch.mm(slopes, weights, out=inner_grad[part])
                if table_grad is not None:
                    _add_product(table_grad, slopes.t(), narrow[part], is_first=start == 0)
        ctx.save_for_backward(inner_grad, table_grad, bias_grad)
        ctx.dtypes = inner.dtype, table.dtype, bias.dtype
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        scaled = [
            # Widened first: a loss scale times a half-precision gradient may overflow.
            None if saved is None else saved.to(dtype) * grads[0].to(dtype)
            for saved, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        ]
        return (*scaled, None, None, None)


def _add_product(target: Tensor, left: Tensor, right: Tensor, *, is_first: bool) -> None:
    """Add `left @ right` to the target; the first product overwrites what lies there."""
    if left.dtype == target.dtype:
        torch.addmm(target, left, right, beta=0.0 if is_first else 1.0, out=target)
    elif is_first:
        target.copy_(left @ right)
    else:
        target += left @ right


def _logits(inner: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """Return fresh logits in float32 (or float64)."""
    with torch.autocast(inner.device.type, enabled=False):
        if inner.dtype == bias.dtype and inner.dtype in (torch.float32, torch.float64):
            return torch.addmm(bias.detach(), inner, weights.t())
        return (inner @ weights.t()).float() + bias.detach().float()


def _product_dtype(inner: Tensor) -> torch.dtype:
    device = inner.device.type
    if torch.is_autocast_enabled(device) and inner.dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return inner.dtype


def _rows(total: int, table: Tensor) -> int:
    """Return the rows of a chunk, so that all chunks are about equally large."""
    logits = _CHUNK_LOGITS if table.device.type == "cpu" else _DEVICE_CHUNK_LOGITS
    # Each chunk passes over the whole gradient of the table, V x E: few rows of a wide table are slow.
    most = max(_MIN_CHUNK_ROWS, logits // len(table), table.shape[1] // 2)
    chunks = max(1, -(-total // most))
    return max(1, -(-total // chunks))


def _check(targets: Tensor, table: Tensor) -> None:
    if targets.device.type != "cpu" or not len(targets):
        return
    lowest, highest = int(targets.min()), int(targets.max())
    if lowest < 0 or highest >= len(table):
        raise DataError(
            f"tokens to predict go from {lowest} to {highest}, allowed are 0 to {len(table) - 1}; "
            "does the tokenizer belong to this model?"
        )
