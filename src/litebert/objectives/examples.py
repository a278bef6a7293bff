"""Clean chunk to corrupted example, and examples to a packed batch. No torch: workers run this."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from litebert.data.batch import Batch
from litebert.data.chunks import Chunk, ChunkIndex
from litebert.errors import DataError, SettingsError
from litebert.objectives.base import (
    IGNORED,
    NO_LABEL,
    Arrangement,
    Draft,
    Objective,
    PretrainingExample,
    Segment,
    SpecialIds,
)
from litebert.objectives.compose import ObjectiveSettings, make_objectives
from litebert.objectives.randomness import example_rng

__all__ = ["ExampleMaker", "collate_examples"]


class ExampleMaker:
    """Makes example k of epoch e from (seed, e, k, progress) alone: no state, no order of calls.

    Attributes:
        index: where the chunks come from.
        settings: the objectives.
        tokens: special ids.
        seed: of all corruption.
    """

    def __init__(
        self, index: ChunkIndex, settings: ObjectiveSettings, tokens: SpecialIds, seed: int
    ) -> None:
        if seed < 0:
            raise SettingsError(f"seed is {seed}; allowed: 0 and above")
        self.index = index
        self.settings = settings
        self.tokens = tokens
        self.seed = seed
        self._objectives: tuple[Objective, ...] = make_objectives(settings)

    def make(self, epoch: int, index: int, progress: float = 0.0) -> PretrainingExample:
        """Return one example.

        Args:
            epoch: from 0.
            index: number of the chunk.
            progress: part of the training that has passed, in [0, 1]; moves rate schedules.

        Raises:
            IndexError: no such chunk.
        """
        rng = example_rng(self.seed, epoch, index)
        arrangement = self._arrange(self.index.chunk(index), rng)
        draft, type_ids = _assemble(arrangement, self.tokens)
        for objective in self._objectives:
            objective.corrupt(draft, rng, progress)
        return PretrainingExample(
            ids=draft.ids,
            type_ids=type_ids,
            labels=draft.labels,
            order_label=arrangement.order_label,
            index=epoch * len(self.index) + index,
        )

    def arrangement(self, epoch: int, index: int) -> Arrangement:
        """Return the segments of an example before anything is hidden.

        Raises:
            IndexError: no such chunk.
        """
        return self._arrange(self.index.chunk(index), example_rng(self.seed, epoch, index))

    def word_begins(self, epoch: int, index: int) -> NDArray[np.int64]:
        """Return the places in the example where a word begins, special tokens included, [W].

        Raises:
            IndexError: no such chunk.
        """
        draft, _ = _assemble(self.arrangement(epoch, index), self.tokens)
        specials = np.flatnonzero(np.isin(draft.ids, (self.tokens.cls, self.tokens.sep)))
        return np.union1d(draft.word_begins, specials)

    def _arrange(self, chunk: Chunk, rng: np.random.Generator) -> Arrangement:
        for objective in self._objectives:
            found = objective.arrange(chunk, self.index, rng)
            if found is not None:
                return found
        return Arrangement(Segment(chunk.ids, chunk.word_starts), None, NO_LABEL)


def _assemble(arrangement: Arrangement, tokens: SpecialIds) -> tuple[Draft, NDArray[np.int32]]:
    """Put the special tokens in: [CLS] first [SEP] second [SEP]."""
    first, second = arrangement.first, arrangement.second
    middle = len(first) + 1
    size = middle + 1 + (0 if second is None else len(second) + 1)
    ids = np.empty(size, np.int32)
    ids[0], ids[1:middle], ids[middle] = tokens.cls, first.ids, tokens.sep
    type_ids = np.zeros(size, np.int32)
    begins, ends, lasts = _words(first, 1, 0)
    if second is not None:
        ids[middle + 1 : -1], ids[-1] = second.ids, tokens.sep
        type_ids[middle + 1 :] = 1
        more = _words(second, middle + 1, len(begins))
        begins, ends, lasts = (
            np.concatenate(pair) for pair in zip((begins, ends, lasts), more, strict=True)
        )
    draft = Draft(
        ids=ids,
        labels=np.full(size, IGNORED, np.int64),
        word_begins=begins,
        word_ends=ends,
        last_words=lasts,
        tokens=tokens,
        num_maskable=len(first) + (0 if second is None else len(second)),
    )
    return draft, type_ids


def _words(
    segment: Segment, offset: int, number: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Begin, end and last word of the segment for each word; `number` is that of its first word."""
    begins = np.flatnonzero(segment.word_starts)
    if not len(begins) or begins[0]:
        begins = np.concatenate([[0], begins])  # a segment begins a word, wherever it was cut
    begins = begins + offset
    ends = np.append(begins[1:], offset + len(segment))
    return begins, ends, np.full(len(begins), number + len(begins) - 1)


def collate_examples(examples: Sequence[PretrainingExample]) -> Batch:
    """Pack examples end to end, in the given order.

    `order_labels` is None where no example has one; `example_index` holds the sample numbers.

    Raises:
        DataError: no examples.
    """
    if not examples:
        raise DataError("a batch needs at least one example")
    lengths = np.asarray([len(example) for example in examples], np.int64)
    cu_seqlens = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(cu_seqlens[-1]) - np.repeat(cu_seqlens[:-1], lengths)
    order = np.asarray([example.order_label for example in examples], np.int64)
    return Batch(
        input_ids=np.concatenate([example.ids for example in examples]),
        token_type_ids=np.concatenate([example.type_ids for example in examples]),
        position_ids=positions.astype(np.int32),
        cu_seqlens=cu_seqlens.astype(np.int32),
        labels=np.concatenate([example.labels for example in examples]),
        example_index=np.asarray([example.index for example in examples], np.int64),
        order_labels=None if (order == NO_LABEL).all() else order,
    )
