"""Many short sequences in few rows: which goes where, so that little is computed for nothing.

Each sequence lies in one row as a whole and sees only itself. A row costs its slots, plus the square of
them for attention: long rows waste fewer slots at their ends, short rows compute less attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from litebert.errors import DataError, SettingsError

__all__ = ["PackedRows", "pack_rows"]

Int64 = NDArray[np.int64]

ROW_LENGTHS: Final = (32, 64, 96, 128, 192, 256, 384, 512)
"""Row lengths that are tried, besides that of the longest sequence."""
ATTENTION_SHARE: Final = 1 / 1200
"""Cost of one more slot in a row for each of its slots, as a share of the cost of everything else.

Measured on albert-base, int8: 1,024 slots in rows of 32 took 1.57 s, of 128 1.68 s, of 512 2.14 s.
"""


@dataclass(frozen=True, slots=True, eq=False)
class PackedRows:
    """Sequences of one call, by place.

    Attributes:
        members: [N] index of each sequence among all that were packed.
        rows: [N] row in which it lies.
        starts: [N] its first slot there.
        lengths: [N] its tokens.
        shape: rows R and slots S of each.
    """

    members: Int64
    rows: Int64
    starts: Int64
    lengths: Int64
    shape: tuple[int, int]

    @property
    def first_positions(self) -> Int64:
        """[N] flat index of the first slot of each sequence."""
        return self.rows * self.shape[1] + self.starts

    @property
    def slots(self) -> Int64:
        """[T] flat index of the slot of each token, sequence after sequence."""
        within = np.arange(self.lengths.sum()) - np.repeat(
            np.cumsum(self.lengths) - self.lengths, self.lengths
        )
        return np.repeat(self.first_positions, self.lengths) + within

    def filled(self, values: Iterable[NDArray[np.integer]], fill: int = 0) -> Int64:
        """Return [R, S] with the values of each sequence in its slots, and `fill` in the others.

        Args:
            values: one array for each of `members`, in their order.
            fill: what stands where no token is.
        """
        flat = np.full(self.shape[0] * self.shape[1], fill, np.int64)
        flat[self.slots] = np.concatenate(list(values))
        return flat.reshape(self.shape)

    @property
    def position_ids(self) -> Int64:
        """[R, S] place of each token in its sequence, from 0; 0 where no token is."""
        return self.filled(np.arange(length) for length in self.lengths.tolist())

    @property
    def sequence_ids(self) -> Int64:
        """[R, S] number of the sequence in its row, from 1; 0 where no token is."""
        order = np.lexsort((self.starts, self.rows))
        numbers = np.empty(len(order), np.int64)
        rows = self.rows[order]
        counts = np.bincount(rows)
        numbers[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
        pairs = zip(numbers.tolist(), self.lengths.tolist(), strict=True)
        return self.filled(np.full(length, number) for number, length in pairs)


def pack_rows(
    lengths: Sequence[int] | Int64,
    *,
    max_tokens: int,
    row_length: int | None = None,
    max_row: int = 512,
) -> list[PackedRows]:
    """Put sequences into the rows of as few calls as the budget allows; each lies in exactly one.

    Longest first, each into the fullest row that still takes it.

    Args:
        lengths: [N] tokens of each sequence, 1 and above.
        max_tokens: most slots of one call; a row longer than that is a call of its own.
        row_length: slots of a row; None: what costs least.
        max_row: longest row that is chosen, if no sequence is longer.

    Raises:
        DataError: a length below one.
        SettingsError: a budget or a row length below one, or a row shorter than a sequence.
    """
    sizes = np.asarray(lengths, np.int64)
    if max_tokens < 1:
        raise SettingsError(f"batch_tokens is {max_tokens}; allowed: 1 and more")
    if not len(sizes):
        return []
    if sizes.min() < 1:
        raise DataError(f"a sequence has {sizes.min()} tokens; each needs at least one")
    longest = int(sizes.max())
    if row_length is not None and row_length < longest:
        raise SettingsError(
            f"row_length is {row_length}, but a sequence has {longest} tokens; give {longest} or more"
        )
    order = np.argsort(-sizes, kind="stable")
    if row_length is None:
        limit = max(longest, min(max_row, max_tokens))
        tried = sorted({longest, *(n for n in ROW_LENGTHS if longest < n <= limit)})
        ways = [_fill(order.tolist(), sizes.tolist(), length) for length in tried]
        bins = min(ways, key=_cost)
    else:
        bins = _fill(order.tolist(), sizes.tolist(), row_length)
    # Rows of like length share a call, so that a short one is not drawn out by a long one.
    bins.sort(key=lambda row: -row.used)
    return [_call(part, sizes) for part in _calls(bins, max_tokens)]


@dataclass(slots=True)
class _Row:
    members: list[int]
    used: int


def _fill(order: list[int], sizes: list[int], row_length: int) -> list[_Row]:
    """Best fit: rows by the room that they have left."""
    rows: list[_Row] = []
    by_room: list[list[_Row]] = [[] for _ in range(row_length + 1)]
    for index in order:
        size = sizes[index]
        row = next((by_room[room].pop() for room in range(size, row_length) if by_room[room]), None)
        if row is None:
            row = _Row([], 0)
            rows.append(row)
        row.members.append(index)
        row.used += size
        by_room[row_length - row.used].append(row)
    return rows


def _cost(rows: list[_Row]) -> float:
    """Relative cost: slots, and slots squared for attention; all rows of a call are as long."""
    length = max(row.used for row in rows)
    return len(rows) * length * (1 + ATTENTION_SHARE * length)


def _calls(rows: list[_Row], max_tokens: int) -> list[list[_Row]]:
    calls: list[list[_Row]] = []
    width = 0
    for row in rows:
        if not calls or (len(calls[-1]) + 1) * width > max_tokens:
            calls.append([])
            width = row.used  # rows come longest first
        calls[-1].append(row)
    return calls


def _call(rows: list[_Row], sizes: Int64) -> PackedRows:
    members = np.array([index for row in rows for index in row.members], np.int64)
    counts = [len(row.members) for row in rows]
    lengths = sizes[members]
    ends = np.cumsum(lengths)
    firsts = np.cumsum([0, *counts[:-1]])
    row_start = np.repeat((ends - lengths)[firsts], counts)
    return PackedRows(
        members=members,
        rows=np.repeat(np.arange(len(rows)), counts),
        starts=ends - lengths - row_start,
        lengths=lengths,
        shape=(len(rows), rows[0].used),
    )
