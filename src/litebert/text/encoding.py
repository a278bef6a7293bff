"""The result of encoding a text or a pair: ids now, everything else when asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from litebert.text.words import word_flags

__all__ = ["Encoding", "PieceSource", "PieceText", "Segment"]

Span = tuple[int, int]


class PieceSource(Protocol):
    """What an encoding needs from the tokenizer that made it."""

    def spans(self, text: str) -> list[Span]:
        """Return the character span in `text` of each piece of `text`."""
        ...

    def token(self, token_id: int) -> str:
        """Return the vocabulary entry of an id."""
        ...


class PieceText:
    """One text, its piece ids, and (worked out once, on demand) their spans and word starts.

    Attributes:
        text: the text that was encoded.
        ids: the ids of its pieces, without special tokens.
        source: the tokenizer behind them.
        base: characters of the original that lie before `text`.
        is_cut: characters of the original were left out before encoding.
    """

    def __init__(
        self, text: str, ids: list[int], source: PieceSource, base: int = 0, is_cut: bool = False
    ) -> None:
        self.text = text
        self.ids = ids
        self.source = source
        self.base = base
        self.is_cut = is_cut

    @cached_property
    def local_spans(self) -> list[Span]:
        """Spans in `text`, one per id."""
        return self.source.spans(self.text)

    @cached_property
    def spans(self) -> list[Span]:
        """Spans in the original, one per id."""
        if not self.base:
            return self.local_spans
        return [(start + self.base, end + self.base) for start, end in self.local_spans]

    @cached_property
    def word_starts(self) -> list[bool]:
        """Whether each piece begins a word of the text."""
        return word_flags(self.text, self.local_spans)


@dataclass(frozen=True, slots=True)
class Segment:
    """The pieces `start` to `stop` (exclusive) of one text."""

    pieces: PieceText
    start: int
    stop: int

    @property
    def ids(self) -> list[int]:
        """The kept ids."""
        return self.pieces.ids[self.start : self.stop]


@dataclass(slots=True)
class Encoding:
    """Token ids of `[CLS] A [SEP]` or `[CLS] A [SEP] B [SEP]`, N in all.

    Attributes:
        ids: N token ids.
        segments: one or two stretches of pieces, in order.
        truncated: pieces that were dropped to keep to the length limit. When the text was cut
            before encoding because it was far too long, this counts the pieces seen plus one.
    """

    ids: list[int]
    segments: tuple[Segment, ...]
    truncated: int = 0
    _offsets: list[Span] | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tokens(self) -> list[str]:
        """N vocabulary entries."""
        source = self.segments[0].pieces.source
        return [source.token(token_id) for token_id in self.ids]

    @property
    def offsets(self) -> list[Span]:
        """N (start, end) character positions in the original text, or in the pair for B.

        Spans never overlap and never go back. Special tokens have (0, 0). A piece that stands for
        no character of its own (a lone blank mark, the second half of a split ½) is empty.
        """
        if self._offsets is None:
            result: list[Span] = [(0, 0)]
            for segment in self.segments:
                result.extend(segment.pieces.spans[segment.start : segment.stop])
                result.append((0, 0))
            self._offsets = result
        return self._offsets

    @property
    def type_ids(self) -> list[int]:
        """N segment ids: 0 up to the first [SEP], 1 after it."""
        result = [0]
        for index, segment in enumerate(self.segments):
            result.extend([index] * (segment.stop - segment.start + 1))
        return result

    @property
    def special_mask(self) -> list[int]:
        """N flags, 1 where a special token was added (not where the text itself holds one)."""
        result = [1]
        for segment in self.segments:
            result.extend([0] * (segment.stop - segment.start))
            result.append(1)
        return result

    @property
    def sequence_ids(self) -> list[int | None]:
        """N entries: 0 for pieces of the text, 1 for the pair, None for special tokens."""
        result: list[int | None] = [None]
        for index, segment in enumerate(self.segments):
            result.extend([index] * (segment.stop - segment.start))
            result.append(None)
        return result

    @property
    def word_starts(self) -> list[bool]:
        """N flags: the piece begins a word of the text. Special tokens are False."""
        result = [False]
        for segment in self.segments:
            result.extend(segment.pieces.word_starts[segment.start : segment.stop])
            result.append(False)
        return result
