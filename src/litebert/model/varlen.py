"""Variable-length attention on CUDA: one kernel for packed sequences, without padding or buckets.

The kernel is trusted only after it has agreed with ordinary attention on a small input, once for each
kind of call; if it fails or disagrees, that is told once and ordinary attention goes on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, cast

import torch
from jaxtyping import Float
from torch import Tensor

from litebert.model.head_layout import HeadLayout
from litebert.model.packing import Packing

__all__ = ["VARLEN", "VariableLength"]

Plain = Callable[[Tensor, Packing, int | None], Tensor]
"""Ordinary attention of packed query, key and value side by side; the number is a window's half."""

HALF: Final = (torch.float16, torch.bfloat16)
LARGEST_HEAD: Final = 256
"""Columns of an attention head that the kernel takes, in multiples of 8."""
PROBE_LENGTHS: Final = (5, 1, 9)
PROBE_HALF: Final = 2
PROBE_TOLERANCE: Final = 0.05
"""Largest difference of outputs and gradients of normal numbers in half precision; a wrong result
differs by 1 or so."""


class VariableLength:
    """The kernel, and for which kinds of calls it has proven itself.

    Args:
        kernel: called as `torch.nn.attention.varlen.varlen_attn`; None: that, imported at first use.
        device_type: where it runs.
    """

    def __init__(
        self, kernel: Callable[..., Any] | None = None, *, device_type: str = "cuda"
    ) -> None:
        self.kernel = kernel
        self.device_type = device_type
        self._proven: dict[object, bool] = {}

    def is_usable(
        self, qkv: Float[Tensor, "T W"], heads: HeadLayout, plain: Plain, *, windowed: bool = False
    ) -> bool:
        """Return whether `attend` may be used for calls like this one.

        Args:
            qkv: query, key and value side by side; only its device and number format matter.
            heads: how they are divided into heads.
            plain: what to compare with.
            windowed: whether only a window is seen.
        """
        fits = heads.size % 8 == 0 and heads.size <= LARGEST_HEAD
        if qkv.device.type != self.device_type or qkv.dtype not in HALF or not fits:
            return False
        kind = (qkv.device, qkv.dtype, heads, windowed)
        if kind not in self._proven:
            fault = self._fault(qkv, heads, plain, PROBE_HALF if windowed else None)
            self._proven[kind] = fault is None
            if fault is not None:
                warnings.warn(
                    f"variable-length attention on {qkv.device} is not used, since {fault}; results "
                    "stay right, packed batches run somewhat slower",
                    stacklevel=2,
                )
        return self._proven[kind]

    def attend(
        self,
        qkv: Float[Tensor, "T W"],
        heads: HeadLayout,
        packing: Packing,
        half: int | None = None,
    ) -> Float[Tensor, "T H"]:
        """Return the attention output of packed tokens.

        Args:
            qkv: query, key and value side by side.
            heads: how they are divided into heads.
            packing: bounds of the sequences.
            half: tokens to each side that are seen; None: all of the sequence.
        """
        if self.kernel is None:
            from torch.nn.attention.varlen import varlen_attn

            self.kernel = varlen_attn
        query, key, value = (
            part.unflatten(-1, (-1, heads.size)).contiguous()  # [T, A or K, D]
            for part in qkv.split(heads.widths, dim=-1)
        )
        bounds = packing.cu_seqlens.to(qkv.device)
        result = self.kernel(
            query,
            key,
            value,
            bounds,
            bounds,
            packing.max_length,
            packing.max_length,
            window_size=(-1, -1) if half is None else (half, half),
            enable_gqa=heads.key_value_heads != heads.heads,
        )
        return cast(Tensor, result).flatten(1)

    def _fault(self, like: Tensor, heads: HeadLayout, plain: Plain, half: int | None) -> str | None:
        """What is wrong with the kernel here, or None."""
        packing = Packing.from_lengths(PROBE_LENGTHS, device=like.device)
        generator = torch.Generator().manual_seed(0)
        shape = (packing.num_tokens, sum(heads.widths))
        probe = torch.randn(shape, generator=generator).to(like.device, like.dtype)

        def trial(qkv: Tensor) -> Tensor:
            return self.attend(qkv, heads, packing, half)

        try:
            found = _with_gradient(probe, trial)
            expected = _with_gradient(probe, lambda qkv: plain(qkv, packing, half))
        except (RuntimeError, ImportError, TypeError, ValueError) as error:
            # The kernel has no other way to say that it cannot run here; the caller warns once.
            return f"it failed ({type(error).__name__}: {str(error).partition(chr(10))[0]:.120})"
        worst = max(
            float((a - b).abs().max()) if a.shape == b.shape else float("inf")
            for a, b in zip(found, expected, strict=True)
        )
        if worst <= PROBE_TOLERANCE:
            return None
        return f"it differs from ordinary attention by {worst:.2g} (allowed {PROBE_TOLERANCE})"


def _with_gradient(probe: Tensor, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False), torch.enable_grad():
        qkv = probe.clone().requires_grad_()
        output = function(qkv)
        (gradient,) = torch.autograd.grad(output.float().sum(), qkv)
    return output.detach().float(), gradient.float()


VARLEN: Final = VariableLength()
"""The one that attention uses."""
