"""Sentence order (SOP) and next sentence (NSP): two segments and what is true of them."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from pydantic import Field

from litebert.data.batch import Batch
from litebert.data.chunks import Chunk, ChunkIndex
from litebert.objectives.base import (
    IN_ORDER,
    NO_LABEL,
    OBJECTIVES,
    SWAPPED,
    Arrangement,
    Objective,
    Segment,
)
from litebert.settings import Settings

__all__ = ["NextSentence", "OrderSettings", "SentenceOrder", "SentencePair"]

_TRIES: Final = 10
"""Chunks looked at to find one of another document, as in the official code."""


class OrderSettings(Settings):
    """How the two segments of an example are made, and what is asked about them."""

    kind: Literal["sop", "nsp", "none"] = "sop"
    """`sop`: in order or swapped. `nsp`: the real next segment or one of another document.
    `none`: no question."""
    weight: float = Field(default=1.0, ge=0.0)
    """Weight of the loss."""
    negative_prob: float = Field(default=0.5, ge=0.0, le=1.0)
    """Probability of label 1: swapped, or from another document."""
    segments: Literal[1, 2] = 2
    """For `none`: 2 keeps the pair of segments, in order; 1 gives one segment."""
    google_compatible: bool = False
    """A chunk of one sentence gets a segment of another document and label 1, even for `sop`, as in
    the published models. Otherwise it stays alone, with masked tokens and without an order label,
    so that both labels are equally frequent."""


class SentencePair(Objective):
    """Cuts a chunk in two at a sentence end. Asks nothing; base of the two that do."""

    name = "none"

    def __init__(self, settings: OrderSettings) -> None:
        self.settings = settings

    def arrange(
        self, chunk: Chunk, index: ChunkIndex, rng: np.random.Generator
    ) -> Arrangement | None:
        """Return two segments, or one where the chunk is a single sentence."""
        del index  # no other document is needed
        cut, _, _ = rng.random(3)
        if len(chunk.sentence_ends) < 2 or self.settings.segments == 1:
            return _alone(chunk)
        return Arrangement(*_halves(chunk, float(cut)), NO_LABEL)

    def one_sentence(
        self, chunk: Chunk, index: ChunkIndex, rng: np.random.Generator, uniform: float
    ) -> Arrangement:
        """Return what a chunk that cannot be cut becomes: alone, or with another document's."""
        if not self.settings.google_compatible:
            return _alone(chunk)
        return _with_other(chunk, _whole(chunk), index, rng, uniform) or _alone(chunk)

    def count(self, batch: Batch) -> int:
        """Return the number of labelled sequences."""
        return 0 if batch.order_labels is None else int((batch.order_labels != NO_LABEL).sum())


@OBJECTIVES.register("sop")
class SentenceOrder(SentencePair):
    """Are two consecutive segments of one document in order (0) or swapped (1)?

    Source: Lan et al. 2020, section 3.1; official `create_pretraining_data.py`.
    """

    name = "sop"

    def arrange(
        self, chunk: Chunk, index: ChunkIndex, rng: np.random.Generator
    ) -> Arrangement | None:
        """Return the segments and their label; one sentence: see `google_compatible`."""
        cut, swap, other = rng.random(3).tolist()
        if len(chunk.sentence_ends) < 2:
            return self.one_sentence(chunk, index, rng, other)
        first, second = _halves(chunk, cut)
        if swap < self.settings.negative_prob:
            return Arrangement(second, first, SWAPPED)
        return Arrangement(first, second, IN_ORDER)


@OBJECTIVES.register("nsp")
class NextSentence(SentencePair):
    """Does the second segment follow the first (0) or is it of another document (1)?

    Source: Devlin et al. 2019, section 3.1. With a single document there is no other: the pair
    stays in order.
    """

    name = "nsp"

    def arrange(
        self, chunk: Chunk, index: ChunkIndex, rng: np.random.Generator
    ) -> Arrangement | None:
        """Return the segments and their label; one sentence: see `google_compatible`."""
        cut, negative, other = rng.random(3).tolist()
        if len(chunk.sentence_ends) < 2:
            return self.one_sentence(chunk, index, rng, other)
        first, second = _halves(chunk, cut)
        if negative < self.settings.negative_prob:
            found = _with_other(chunk, first, index, rng, other)
            if found is not None:
                return found
        return Arrangement(first, second, IN_ORDER)


def _whole(chunk: Chunk) -> Segment:
    return Segment(chunk.ids, chunk.word_starts)


def _alone(chunk: Chunk) -> Arrangement:
    return Arrangement(_whole(chunk), None, NO_LABEL)


def _halves(chunk: Chunk, uniform: float) -> tuple[Segment, Segment]:
    """Cut at one of the inner sentence ends, all equally likely."""
    ends = chunk.sentence_ends
    cut = int(ends[int(uniform * (len(ends) - 1))])
    whole = _whole(chunk)
    return whole.part(0, cut), whole.part(cut, len(chunk))


def _with_other(
    chunk: Chunk, first: Segment, index: ChunkIndex, rng: np.random.Generator, uniform: float
) -> Arrangement | None:
    """Pair `first` with the beginning of a random chunk of another document; None: no other found.

    Together they are no longer than the longest chunk: the second segment is cut, and the first one
    too where it alone fills a chunk.
    """
    limit = int(index.settings["max_tokens"])
    for number in (uniform, *rng.random(_TRIES - 1).tolist()):
        other = int(number * len(index))
        if index.document(other) != chunk.document:
            break
    else:
        return None
    second = _whole(index.chunk(other))
    room = max(limit - len(first), min(len(second), limit // 2))
    second = second.part(0, min(len(second), room))
    return Arrangement(first.part(0, min(len(first), limit - len(second))), second, SWAPPED)
