"""A random sample of a stream of texts: bounded, the same for the same stream and seed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import Final

from litebert.text.sentences import SentenceSplitter

__all__ = ["TextSample", "passages"]

_PASSAGE_CHARS: Final = 800
_MAX_PASSAGE_CHARS: Final = 4_000


class TextSample:
    """Keeps passages up to a number of bytes; every passage seen has the same chance.

    Each passage draws a number, and those with the lowest numbers stay (bottom-k sampling). While
    all fit, all stay.
    """

    def __init__(self, max_bytes: int, seed: int, max_sentences: int | None = None) -> None:
        """Start empty.

        Args:
            max_bytes: most bytes of UTF-8 that are kept.
            seed: of the draw.
            max_sentences: most sentences that are kept, None for any number.
        """
        self._max_bytes = max_bytes
        self._max_sentences = max_sentences
        self._draw = random.Random(seed).random  # the same numbers in every version of Python
        self._heap: list[tuple[float, int, str, int, int]] = []
        self._limit = 1.0
        self.seen = 0
        """Passages seen."""
        self.seen_bytes = 0
        """Bytes of UTF-8 seen."""
        self.num_bytes = 0
        """Bytes of UTF-8 kept."""
        self.num_sentences = 0
        """Sentences kept."""

    def add(self, text: str, sentences: int = 1) -> None:
        """Show one passage that has so many sentences."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", errors="replace"))
        number = self.seen
        self.seen += 1
        self.seen_bytes += size
        drawn = self._draw()
        if drawn >= self._limit:
            return
        heapq.heappush(self._heap, (-drawn, number, text, size, sentences))
        self.num_bytes += size
        self.num_sentences += sentences
        while len(self._heap) > 1 and self._is_full():
            lost = heapq.heappop(self._heap)
            self._limit = -lost[0]
            self.num_bytes -= lost[3]
            self.num_sentences -= lost[4]

    def _is_full(self) -> bool:
        return self.num_bytes > self._max_bytes or (
            self._max_sentences is not None and self.num_sentences > self._max_sentences
        )

    @property
    def is_whole(self) -> bool:
        """Whether everything seen was kept."""
        return len(self._heap) == self.seen

    def __len__(self) -> int:
        return len(self._heap)

    def texts(self) -> Iterator[str]:
        """Yield the passages that were kept, in the order they were seen."""
        for item in sorted(self._heap, key=lambda item: item[1]):
            yield item[2]


def passages(text: str, splitter: SentenceSplitter) -> Iterator[tuple[str, int]]:
    """Yield stretches of some hundred characters that end where sentences end, with their counts.

    A sentence of more than 4,000 characters is cut at a blank.
    """
    held: list[str] = []
    size = 0
    for sentence in splitter(text):
        if len(sentence) > _MAX_PASSAGE_CHARS and held:
            yield "\n".join(held), len(held)
            held, size = [], 0
        while len(sentence) > _MAX_PASSAGE_CHARS:
            at = sentence.rfind(" ", 1, _MAX_PASSAGE_CHARS)
            at = at if at > 0 else _MAX_PASSAGE_CHARS
            yield sentence[:at], 1
            sentence = sentence[at:].lstrip()
        held.append(sentence)
        size += len(sentence) + 1
        if size >= _PASSAGE_CHARS:
            yield "\n".join(held), len(held)
            held, size = [], 0
    if held:
        yield "\n".join(held), len(held)
