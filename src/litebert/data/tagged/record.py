"""A text with labelled spans, whatever file it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from litebert.errors import DataError
from litebert.text.words import character_boundaries, word_boundaries

if TYPE_CHECKING:
    from jaxtyping import Int64

__all__ = [
    "Span", "TaggedText", "clip_words", "count_cut", "join_words", "split_characters", "split_words",
    "text_record",
]  # fmt: skip

_ZERO_WIDTH_SPACE = "\u200b"
Words = tuple[tuple[int, int], ...]


class Span(NamedTuple):
    """A labelled stretch of a text.

    Attributes:
        start: position of its first character (a Unicode code point), from 0.
        end: position behind its last character.
        label: type of the entity or slot.
    """

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class TaggedText:
    """One text to tag: a sentence, a message or a document.

    Attributes:
        text: the text; words of a tokenized file are joined by single blanks.
        words: (start, end) of each word in `text`, in order, never empty, never overlapping.
        spans: in order, never overlapping, without outer white space; None: not labelled.
        id: name of the record in its file.
        group: document it belongs to; of its own where no document is known.
        path: file it came from.
        line: 1-based line where it begins, or number of the record.
        intent: what the whole text asks for, where the file says so.
    """

    text: str
    words: Words
    spans: tuple[Span, ...] | None
    id: str
    group: str
    path: Path
    line: int
    intent: str | None = None


def text_record(text: str, pair: str | None = None) -> TaggedText:
    """Return a text that somebody typed as a record without labels.

    Raises:
        DataError: a second text, or a text without a word.
    """
    if pair is not None:
        raise DataError("a model that tags takes one text; leave the second one out")
    words = split_words(text) if text.strip() else ()
    if not words:
        raise DataError("the text is empty; give one with a word in it")
    return TaggedText(text, words, None, "1", "1", Path("<text>"), 1)


def split_words(text: str) -> Words:
    """Return the (start, end) of each word of a text, for any script; see `text.words`.

    Each punctuation mark is a word of its own, so that an entity may end before it.
    """
    starts = np.flatnonzero(np.frombuffer(bytes(word_boundaries(text)), np.uint8)).tolist()
    words: list[tuple[int, int]] = []
    for start, stop in pairwise([*starts, len(text)]):
        while text[stop - 1].isspace() or text[stop - 1] == _ZERO_WIDTH_SPACE:
            stop -= 1
        words.append((start, stop))
    return tuple(words)


def split_characters(text: str, words: Words) -> Words:
    """Return the (start, end) of each character in the words, its marks with it."""
    flags = character_boundaries(text)
    found: list[tuple[int, int]] = []
    for start, stop in words:
        inner = [place for place in range(start + 1, stop) if flags[place]]
        found.extend(pairwise([start, *inner, stop]))
    return tuple(found)


def count_cut(record: TaggedText) -> int:
    """Return how many spans begin or end inside a word."""
    starts, ends = {start for start, _ in record.words}, {end for _, end in record.words}
    return sum(span.start not in starts or span.end not in ends for span in record.spans or ())


def join_words(words: Sequence[str]) -> tuple[str, Words]:
    """Return the words joined by single blanks, and the (start, end) of each."""
    places: list[tuple[int, int]] = []
    position = 0
    for word in words:
        places.append((position, position + len(word)))
        position += len(word) + 1
    return " ".join(words), tuple(places)


def clip_words(
    spans: Sequence[Span], starts: Int64[np.ndarray, " W"], ends: Int64[np.ndarray, " W"]
) -> list[tuple[int, int, str]]:
    """Return the (first, last + 1, label) of the words that each span touches.

    A word that two spans touch goes to the first of them; a span that is left without a word is
    left out.

    Args:
        spans: in order.
        starts: first character of each word, rising.
        ends: character behind each word, rising.
    """
    result: list[tuple[int, int, str]] = []
    taken = 0
    for span in spans:
        first = max(taken, int(np.searchsorted(ends, span.start, side="right")))
        last = int(np.searchsorted(starts, span.end, side="left"))
        if first < last:
            result.append((first, last, span.label))
            taken = last
    return result
