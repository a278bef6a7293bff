"""Packed batches: real tokens only, one after another, with the bounds of each sequence.

`Packing` knows the lengths on the host, so that using it never waits for the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from litebert.errors import DataError

__all__ = ["Bucket", "Packing", "gather_rows", "scatter_rows"]

BUCKET_SLACK = 0.8
"""A bucket holds sequences at least this long, as a fraction of its longest: bounds its padding."""
BUCKET_STEP = 8
"""Sequences within this many tokens of the longest share its bucket whatever the fraction."""


@dataclass(frozen=True, eq=False)
class Bucket:
    """Sequences of similar length, brought into one small padded batch.

    Attributes:
        shape: (sequences, width in tokens).
        rows: packed index of each real token, in the order of `slots`.
        slots: flat index of the same token in the padded bucket.
        mask: True where a real token stands, [b, 1, 1, w]; None if there is no padding.
    """

    shape: tuple[int, int]
    rows: Tensor
    slots: Tensor
    mask: Tensor | None


@dataclass(frozen=True, eq=False)
class Packing:
    """Bounds of N sequences in T packed tokens, and where each token stood in a padded batch.

    Attributes:
        cu_seqlens: start of each sequence, then T: int32 [N + 1].
        lengths: tokens of each sequence, on the host; 0 is allowed (a fully masked row).
        indices: flat index of each token in the padded batch, int64 [T]; None if the packing was
            not made from a padded batch, or if that has no padding.
        padded_shape: (B, S) of that batch, None if there was none.
    """

    cu_seqlens: Tensor
    lengths: tuple[int, ...]
    indices: Tensor | None = None
    padded_shape: tuple[int, int] | None = None

    @classmethod
    def from_lengths(
        cls, lengths: Sequence[int], *, device: torch.device | str | None = None
    ) -> Packing:
        """Return the packing of sequences of these lengths.

        Args:
            lengths: tokens of each sequence, >= 0.
            device: where the tensors go; default CPU.

        Raises:
            DataError: no sequence, or a negative length.
        """
        checked = tuple(int(length) for length in lengths)
        if not checked or min(checked) < 0:
            raise DataError(
                f"a packed batch needs sequences of length >= 0, got lengths {list(checked)[:8]}"
            )
        return cls(_bounds(checked, device), checked)

    @classmethod
    def from_cu_seqlens(cls, cu_seqlens: Int[Tensor, " bounds"]) -> Packing:
        """Return the packing with these bounds, [N + 1]; copies them to the host once.

        Raises:
            DataError: not a rising series that starts at 0.
        """
        bounds = cu_seqlens.tolist()
        if len(bounds) < 2 or bounds[0] != 0 or any(b < a for a, b in pairwise(bounds)):
            raise DataError(
                f"cu_seqlens must start at 0 and never fall, got {bounds[:8]}; it holds the start of "
                "each sequence, then the number of tokens"
            )
        return cls(cu_seqlens.to(torch.int32), tuple(b - a for a, b in pairwise(bounds)))

    @classmethod
    def full(cls, batch: int, length: int, *, device: torch.device | str | None = None) -> Packing:
        """Return the packing of a padded batch [batch, length] without padding."""
        lengths = (length,) * batch
        return cls(_bounds(lengths, device), lengths, None, (batch, length))

    @classmethod
    def from_mask(cls, mask: Shaped[Tensor, "B S"]) -> Packing:
        """Return the packing of the tokens where `mask` is 1; copies it to the host once.

        Any mask will do: left padding, holes, a row of zeros. The order of tokens is kept.

        Raises:
            DataError: not two-dimensional, empty, or with other values than 0 and 1, such as the
                large negative numbers of a mask that is added to scores.
        """
        if mask.ndim != 2 or mask.numel() == 0:
            raise DataError(f"attention_mask must be [B, S], got shape {tuple(mask.shape)}")
        batch, width = int(mask.shape[0]), int(mask.shape[1])
        values = mask.detach().cpu()
        host = values != 0
        if not bool((values[host] == 1).all()):
            wrong = values[host & (values != 1)][0].item()
            raise DataError(
                f"attention_mask holds {wrong:g}, allowed are 1 for tokens and 0 for padding"
            )
        lengths = tuple(host.sum(1).tolist())
        if sum(lengths) == batch * width:
            return cls.full(batch, width, device=mask.device)
        indices = host.view(-1).nonzero().view(-1).to(mask.device, non_blocking=True)
        return cls(_bounds(lengths, mask.device), lengths, indices, (batch, width))

    def to(self, device: torch.device | str) -> Packing:
        """Return this packing with its tensors on a device; itself if they are there."""
        if self.cu_seqlens.device == torch.device(device):
            return self
        indices = None if self.indices is None else self.indices.to(device)
        return Packing(self.cu_seqlens.to(device), self.lengths, indices, self.padded_shape)

    @property
    def num_tokens(self) -> int:
        """Number of packed tokens T."""
        return sum(self.lengths)

    @property
    def num_sequences(self) -> int:
        """Number of sequences N."""
        return len(self.lengths)

    @cached_property
    def max_length(self) -> int:
        """Tokens of the longest sequence."""
        return max(self.lengths)

    @cached_property
    def is_rectangular(self) -> bool:
        """Whether all sequences are equally long, so that packed is [N, S] by a mere view."""
        return min(self.lengths) == self.max_length > 0

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Packed index of the first token of each sequence, on the host."""
        return (0, *accumulate(self.lengths))[:-1]

    @cached_property
    def position_ids(self) -> Int[Tensor, " T"]:
        """Position of each token: its column in the padded batch, else its place in its sequence."""
        if self.indices is not None and self.padded_shape is not None:
            return self.indices % self.padded_shape[1]
        return _ranges(self.lengths, self.cu_seqlens.device)

    @cached_property
    def sequence_ids(self) -> Int[Tensor, " T"]:
        """Sequence of each token, 0..N-1."""
        device = self.cu_seqlens.device
        counts = torch.tensor(self.lengths)
        return torch.repeat_interleave(torch.arange(self.num_sequences), counts).to(device)

    @cached_property
    def has_empty(self) -> bool:
        """Whether some sequence has no token."""
        return min(self.lengths) == 0

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """Non-empty sequences grouped by length: little padding, few batches."""
        order = sorted(
            (n for n in range(self.num_sequences) if self.lengths[n]),
            key=lambda n: -self.lengths[n],
        )
        groups: list[list[int]] = []
        for n in order:
            widest = self.lengths[groups[-1][0]] if groups else 0
            if groups and self.lengths[n] >= min(BUCKET_SLACK * widest, widest - BUCKET_STEP):
                groups[-1].append(n)
            else:
                groups.append([n])
        return tuple(self._bucket(group) for group in groups)

    def _bucket(self, group: list[int]) -> Bucket:
        device = self.cu_seqlens.device
        width = self.lengths[group[0]]
        rows: list[int] = []
        slots: list[int] = []
        for place, n in enumerate(group):
            start, length = self.starts[n], self.lengths[n]
            rows.extend(range(start, start + length))
            slots.extend(range(place * width, place * width + length))
        shape = (len(group), width)
        slot_tensor = torch.tensor(slots)
        mask = None
        if len(slots) < len(group) * width:
            flat = torch.zeros(len(group) * width, dtype=torch.bool)
            flat[slot_tensor] = True
            mask = flat.view(len(group), 1, 1, width).to(device)
        return Bucket(shape, torch.tensor(rows).to(device), slot_tensor.to(device), mask)

    def pack(self, padded: Shaped[Tensor, "B S ..."]) -> Shaped[Tensor, "T ..."]:
        """Return the real tokens of a padded tensor.

        Raises:
            DataError: the packing was made from another shape.
        """
        batch, width = self._shape()
        if padded.shape[:2] != (batch, width):
            raise DataError(
                f"this packing was made for [{batch}, {width}], got a tensor of {tuple(padded.shape)}"
            )
        flat = padded.reshape(batch * width, *padded.shape[2:])
        indices = self._flat_indices()
        return flat if indices is None else gather_rows(flat, indices)

    def unpack(
        self, packed: Shaped[Tensor, "T ..."], *, fill: float = 0.0
    ) -> Shaped[Tensor, "B S ..."]:
        """Return the padded tensor; padding holds `fill`.

        A packing made from lengths gives right padding to the longest sequence.
        """
        batch, width = self._shape()
        indices = self._flat_indices()
        if indices is not None:
            packed = scatter_rows(packed, indices, batch * width, fill)
        return packed.view(batch, width, *packed.shape[1:])

    def mask(self) -> Bool[Tensor, "B S"]:
        """Return the padded mask: True where a real token stands."""
        ones = torch.ones(self.num_tokens, dtype=torch.bool, device=self.cu_seqlens.device)
        return self.unpack(ones)

    def first_tokens(self, packed: Shaped[Tensor, "T ..."]) -> Shaped[Tensor, "N ..."]:
        """Return the first token of each sequence; zeros for an empty one.

        Differs from transformers: with left padding this is the first real token, not a pad.
        """
        if self.num_sequences == 1 and not self.has_empty:
            return packed[:1]
        if self.is_rectangular:
            return packed.view(self.num_sequences, self.max_length, *packed.shape[1:])[:, 0]
        if not self.has_empty:
            return packed.index_select(0, self.cu_seqlens[:-1].to(torch.int64))
        filled = [n for n in range(self.num_sequences) if self.lengths[n]]
        rows = torch.tensor([self.starts[n] for n in filled], dtype=torch.int64)
        slots = torch.tensor(filled, dtype=torch.int64)
        chosen = packed.index_select(0, rows.to(packed.device))
        return scatter_rows(chosen, slots.to(packed.device), self.num_sequences)

    def select(self, sequences: Sequence[int]) -> tuple[Packing, Int[Tensor, " kept"]]:
        """Return the packing of some of the sequences, and the packed indices of their tokens.

        Args:
            sequences: their numbers in 0..N-1, at least one; they come in this order.

        Raises:
            DataError: no sequence, or one that is not there.
        """
        if not sequences or not 0 <= min(sequences) <= max(sequences) < self.num_sequences:
            raise DataError(
                f"sequences {list(sequences)[:8]} of a packing of {self.num_sequences}; choose at "
                f"least one, from 0 to {self.num_sequences - 1}"
            )
        rows = [
            row
            for n in sequences
            for row in range(self.starts[n], self.starts[n] + self.lengths[n])
        ]
        device = self.cu_seqlens.device
        chosen = Packing.from_lengths([self.lengths[n] for n in sequences], device=device)
        return chosen, torch.tensor(rows, dtype=torch.int64).to(device)

    def mean_tokens(self, packed: Shaped[Tensor, "T H"]) -> Shaped[Tensor, "N H"]:
        """Return the mean over the tokens of each sequence; zeros for an empty one."""
        sums = packed.new_zeros(self.num_sequences, packed.shape[-1])
        sums = sums.index_add(0, self.sequence_ids, packed)
        counts = torch.tensor(self.lengths, dtype=packed.dtype).clamp_min(1).to(packed.device)
        return sums / counts[:, None]

    def _shape(self) -> tuple[int, int]:
        return self.padded_shape or (self.num_sequences, self.max_length)

    def _flat_indices(self) -> Tensor | None:
        if self.padded_shape is not None or self.is_rectangular:
            return self.indices
        return self.sequence_ids * self.max_length + self.position_ids


def gather_rows(source: Tensor, rows: Tensor) -> Tensor:
    """Return `source[rows]` for rows that occur once each: a cheaper gradient than indexing."""
    return _Gather.apply(source, rows)  # pyright: ignore[reportReturnType]


def scatter_rows(source: Tensor, rows: Tensor, size: int, fill: float = 0.0) -> Tensor:
    """Return [size, ...] holding `source` at `rows` (each occurring once) and `fill` elsewhere."""
    return _Scatter.apply(source, rows, size, fill)  # pyright: ignore[reportReturnType]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.size = source.shape[0]
        return source.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return scatter_rows(grads[0], rows, ctx.size), None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, source: Tensor, rows: Tensor, size: int, fill: float) -> Tensor:
        ctx.save_for_backward(rows)
        target = source.new_full((size, *source.shape[1:]), fill)
        return target.index_copy_(0, rows, source)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        (rows,) = ctx.saved_tensors
        return gather_rows(grads[0], rows), None, None, None


def _bounds(lengths: tuple[int, ...], device: torch.device | str | None) -> Tensor:
    return torch.tensor((0, *accumulate(lengths)), dtype=torch.int32, device=device)


def _ranges(lengths: Iterable[int], device: torch.device) -> Tensor:
    return torch.cat([torch.arange(length) for length in lengths]).to(device)
