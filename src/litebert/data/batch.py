"""Encoded examples to packed batches, and the order in which an epoch visits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.errors import DataError, SettingsError

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
_BUCKET_BATCHES = 32
"""Examples are sorted by length inside windows of this many batches."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedExample:
    """One example as token ids: one sequence, or several that belong together.

    Attributes:
        ids: [S] token ids, special tokens included; several sequences lie end to end.
        type_ids: [S] segment of each token, 0 or 1.
        label: class index, number, [C] multi-hot, [S] class of each token, [K] integers such as
            start and end of a span (K != S), or None.
        index: position of the example in its data set.
        sequence_lengths: tokens of each sequence where there are several, such as the choices of a
            question or the texts to compare; empty: one sequence.
    """

    ids: Int32
    type_ids: NDArray[np.integer[Any]]
    label: NDArray[Any] | int | float | None
    index: int
    sequence_lengths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.ids.ndim != 1 or self.ids.shape != self.type_ids.shape or not len(self.ids):
            raise DataError(
                f"example {self.index}: ids {self.ids.shape} and type ids {self.type_ids.shape} "
                "must be one-dimensional, of one length, and not empty"
            )
        parts = self.sequence_lengths
        if parts and (sum(parts) != len(self.ids) or min(parts) < 1):
            raise DataError(
                f"example {self.index}: sequences of {parts} tokens for {len(self.ids)} ids; each "
                "needs at least one token, and together they are the ids"
            )

    @property
    def num_sequences(self) -> int:
        """Sequences of the example, at least 1."""
        return len(self.sequence_lengths) or 1

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sequences laid end to end without padding.

    Attributes:
        input_ids: [T] token ids.
        token_type_ids: [T] segment of each token.
        position_ids: [T] position in its own sequence, from 0.
        cu_seqlens: [N+1] start of each sequence; the last is T.
        labels: int64 [G], float32 [G] (regression), float32 [G, C] (multi-label), int64 [G, K]
            (spans), int64 [T] (tokens), or None.
        example_index: [G] position of each example in its data set.
        order_labels: int64 [N], 0 segments in order, 1 swapped, -100 unknown; None: no pairs.
        group_sizes: int32 [G] sequences of each example; None: one each, and G = N.
    """

    input_ids: Int32
    token_type_ids: Int32
    position_ids: Int32
    cu_seqlens: Int32
    labels: NDArray[Any] | None
    example_index: Int64
    order_labels: Int64 | None = None
    group_sizes: Int32 | None = None

    def __post_init__(self) -> None:
        tokens, sequences = len(self.input_ids), len(self.cu_seqlens) - 1
        shapes = {
            "token_type_ids": (self.token_type_ids, tokens),
            "position_ids": (self.position_ids, tokens),
            "example_index": (self.example_index, self.num_examples),
        }
        if self.order_labels is not None:
            shapes["order_labels"] = (self.order_labels, sequences)
        for name, (array, length) in shapes.items():
            if array.shape != (length,):
                raise DataError(f"batch {name} has shape {array.shape}, expected ({length},)")
        lengths = np.diff(self.cu_seqlens)
        if sequences < 1 or self.cu_seqlens[0] or self.cu_seqlens[-1] != tokens or (
            lengths < 1
        ).any():  # fmt: skip
            raise DataError(
                f"batch cu_seqlens must rise strictly from 0 to {tokens}, got {self.cu_seqlens}"
            )
        sizes = self.group_sizes
        if sizes is not None and (sizes.sum() != sequences or (sizes < 1).any()):
            raise DataError(
                f"batch group_sizes {sizes} must be 1 and above and add up to {sequences} sequences"
            )
        if self.labels is not None and len(self.labels) not in (self.num_examples, tokens):
            raise DataError(
                f"batch has {len(self.labels)} labels for {self.num_examples} examples, {tokens} tokens"
            )

    @property
    def num_tokens(self) -> int:
        """Real tokens T."""
        return len(self.input_ids)

    @property
    def num_sequences(self) -> int:
        """Sequences N."""
        return len(self.cu_seqlens) - 1

    @property
    def num_examples(self) -> int:
        """Examples G."""
        return self.num_sequences if self.group_sizes is None else len(self.group_sizes)

    @property
    def example_bounds(self) -> Int32:
        """[G+1] start of each example among the tokens; the last is T."""
        if self.group_sizes is None:
            return self.cu_seqlens
        return self.cu_seqlens[np.concatenate([[0], np.cumsum(self.group_sizes)])]

    @property
    def lengths(self) -> Int32:
        """[N] tokens of each sequence."""
        return np.diff(self.cu_seqlens).astype(np.int32)


def collate(examples: Sequence[EncodedExample]) -> Batch:
    """Pack examples, in the given order.

    Raises:
        DataError: no examples, some labelled and some not, or labels of different shapes.
    """
    if not examples:
        raise DataError("a batch needs at least one example")
    parts = [example.sequence_lengths or (len(example),) for example in examples]
    is_grouped = any(example.sequence_lengths for example in examples)
    lengths = np.asarray([length for part in parts for length in part], np.int64)
    cu_seqlens = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(cu_seqlens[-1]) - np.repeat(cu_seqlens[:-1], lengths)
    return Batch(
        input_ids=np.concatenate([e.ids for e in examples]).astype(np.int32, copy=False),
        token_type_ids=np.concatenate([e.type_ids for e in examples]).astype(np.int32),
        position_ids=positions.astype(np.int32),
        cu_seqlens=cu_seqlens.astype(np.int32),
        labels=_collate_labels(examples),
        example_index=np.asarray([e.index for e in examples], np.int64),
        group_sizes=np.asarray([len(part) for part in parts], np.int32) if is_grouped else None,
    )


def _collate_labels(examples: Sequence[EncodedExample]) -> NDArray[Any] | None:
    labels = [example.label for example in examples]
    if all(label is None for label in labels):
        return None
    kinds = {_label_form(example) for example in examples}
    if len(kinds) != 1:
        raise DataError(f"labels of one batch differ in form: {', '.join(sorted(kinds))}")
    form = kinds.pop()
    if form == "class index":
        return np.asarray(labels, np.int64)
    if form == "number":
        return np.asarray(labels, np.float32)
    arrays = [np.asarray(label) for label in labels]
    if form == "token classes":
        return np.concatenate(arrays).astype(np.int64)
    if form.startswith("integers"):
        return np.stack(arrays).astype(np.int64)  # [G, K]
    return np.stack(arrays).astype(np.float32)  # [N, C]


def _label_form(example: EncodedExample) -> str:
    label = example.label
    if label is None:
        return "none"
    if isinstance(label, np.ndarray) and label.ndim == 1:
        if np.issubdtype(label.dtype, np.floating):
            return f"multi-hot of {len(label)}"
        if len(label) == len(example):
            return "token classes"
        return f"integers [{len(label)}]"
    if isinstance(label, int | np.integer) and not isinstance(label, bool):
        return "class index"
    if isinstance(label, float | np.floating):
        return "number"
    return f"{type(label).__name__}"


def split_batch(batch: Batch, micro_batch_tokens: int) -> list[Batch]:
    """Cut a batch into runs of whole examples of at most `micro_batch_tokens` tokens each.

    An example longer than that stands alone. Order is kept.

    Raises:
        SettingsError: `micro_batch_tokens` is less than one.
    """
    if micro_batch_tokens < 1:
        raise SettingsError(f"micro_batch_tokens is {micro_batch_tokens}; allowed: 1 and above")
    bounds = [0]
    starts = batch.example_bounds
    for example in range(1, batch.num_examples):
        if starts[example + 1] - starts[bounds[-1]] > micro_batch_tokens:
            bounds.append(example)
    bounds.append(batch.num_examples)
    return [_slice(batch, a, b) for a, b in pairwise(bounds)]


def _slice(batch: Batch, first: int, last: int) -> Batch:
    """Return the examples `first` to `last` (exclusive) as a batch."""
    sizes = batch.group_sizes
    a, b = int(batch.example_bounds[first]), int(batch.example_bounds[last])
    head, tail = (
        (first, last) if sizes is None else (int(sizes[:first].sum()), int(sizes[:last].sum()))
    )
    labels = batch.labels
    if labels is not None:
        per_token = len(labels) != batch.num_examples
        labels = labels[a:b] if per_token else labels[first:last]
    return Batch(
        input_ids=batch.input_ids[a:b],
        token_type_ids=batch.token_type_ids[a:b],
        position_ids=batch.position_ids[a:b],
        cu_seqlens=(batch.cu_seqlens[head : tail + 1] - a).astype(np.int32),
        labels=labels,
        example_index=batch.example_index[first:last],
        order_labels=None if batch.order_labels is None else batch.order_labels[head:tail],
        group_sizes=None if sizes is None else sizes[first:last],
    )


def batch_order(
    lengths: Sequence[int] | NDArray[np.integer[Any]],
    *,
    batch_size: int | None,
    seed: int,
    epoch: int,
    bucket: bool = True,
    max_tokens: int | None = None,
) -> list[Int64]:
    """Return the example indices of each batch of one epoch.

    A function of its arguments only: any step of any epoch can be computed without replay, and
    neither process, worker nor rank enters. Every example occurs exactly once.

    Args:
        lengths: [N] tokens of each example.
        batch_size: most examples a batch, or None for no limit (then `max_tokens` is needed).
        seed: non-negative.
        epoch: from 0.
        bucket: put examples of similar length together; the order of batches is random anyway.
        max_tokens: most real tokens a batch; a longer example stands alone.

    Raises:
        SettingsError: an argument out of range.
        DataError: a length below one.
    """
    sizes = np.asarray(lengths, np.int64)
    _check_order(sizes, batch_size, seed, epoch, max_tokens)
    if not len(sizes):
        return []
    rng = np.random.default_rng(np.random.SeedSequence([seed, epoch]))
    order = rng.permutation(len(sizes))
    if bucket:
        order = _sort_windows(order, sizes, batch_size, max_tokens)
    batches = _cut(order, sizes, batch_size, max_tokens)
    if bucket:
        batches = [batches[i] for i in rng.permutation(len(batches))]
    return batches


def _check_order(
    sizes: Int64, batch_size: int | None, seed: int, epoch: int, max_tokens: int | None
) -> None:
    if batch_size is None and max_tokens is None:
        raise SettingsError("give batch_size, max_tokens, or both")
    for name, value, least in (
        ("batch_size", batch_size, 1), ("max_tokens", max_tokens, 1),
        ("seed", seed, 0), ("epoch", epoch, 0),
    ):  # fmt: skip
        if value is not None and value < least:
            raise SettingsError(f"{name} is {value}; allowed: {least} and above")
    if sizes.ndim != 1 or (sizes < 1).any():
        raise DataError("lengths must be a list of numbers of 1 and above")


def _sort_windows(
    order: Int64, sizes: Int64, batch_size: int | None, max_tokens: int | None
) -> Int64:
    typical = max(1, int(max_tokens or 0) // max(1, int(sizes.mean())))
    window = _BUCKET_BATCHES * (batch_size or typical)
    parts = [order[start : start + window] for start in range(0, len(order), window)]
    return np.concatenate([part[np.argsort(sizes[part], kind="stable")] for part in parts])


def _cut(order: Int64, sizes: Int64, batch_size: int | None, max_tokens: int | None) -> list[Int64]:
    if max_tokens is None:
        step = batch_size or len(order)
        return [order[start : start + step] for start in range(0, len(order), step)]
    batches: list[Int64] = []
    start, tokens = 0, 0
    for position, size in enumerate(sizes[order].tolist()):
        full = batch_size is not None and position - start >= batch_size
        if position > start and (full or tokens + size > max_tokens):
            batches.append(order[start:position])
            start, tokens = position, 0
        tokens += size
    batches.append(order[start:])
    return batches
