"""Texts to sentences, by the name of a splitter; a sentence holds no line end.

Lines that only wrap are joined first. A block of lines (between empty lines) whose longest line
has at most `WRAP_CHARS` characters is one wrapped paragraph; in any other block each line is a
paragraph of its own, as on web pages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from litebert.errors import MissingDependencyError, SettingsError
from litebert.registry import Registry

__all__ = ["SENTENCE_SPLITTERS", "SentenceSplitter", "paragraphs", "sentence_splitter"]

SentenceSplitter = Callable[[str], list[str]]
"""Returns the sentences of a text, without white space around them, none empty."""

SENTENCE_SPLITTERS: Registry[Callable[[str], SentenceSplitter]] = Registry("sentence splitter")
"""Makers of splitters by name; each is called with a language code such as "en"."""

WRAP_CHARS: Final = 120
_PIECE_CHARS: Final = 100_000
"""Paragraphs are handed to the library in pieces of about this size."""
_BLOCKS: Final = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_WITHOUT_BLANKS: Final = re.compile(
    "(?<=[\u3001-\u30ff\u3400-\u9fff\uff01-\uff60])\n(?=[\u3001-\u30ff\u3400-\u9fff\uff01-\uff60])"
)


def sentence_splitter(name: str = "sentencex", language: str = "en") -> SentenceSplitter:
    """Return a splitter; it can be pickled and sent to another process.

    Args:
        name: "sentencex", "paragraphs", "lines", or a dotted path `package.module:name`.
        language: ISO code; "sentencex" falls back to a related language or to English.

    Raises:
        SettingsError: no such splitter, or not a language code.
        MissingDependencyError: the splitter's package is not installed.
    """
    if not _LANGUAGE.fullmatch(language):
        raise SettingsError(
            f"language {language!r:.40} is not a language code; use for example en, de, hi or zh"
        )
    return SENTENCE_SPLITTERS.get(name)(language)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text, wrapped lines joined, none empty."""
    for block in _BLOCKS.split(text):
        if "\n" not in block:
            if clean := block.strip():
                yield clean
            continue
        lines = block.split("\n")
        if max(map(len, lines)) > WRAP_CHARS:
            yield from filter(None, map(str.strip, lines))
            continue
        joined = "\n".join(map(str.strip, lines)).strip()
        if not joined.isascii():
            joined = _WITHOUT_BLANKS.sub("", joined)
        if joined:
            yield joined.replace("\n", " ")


class _Sentencex:
    """Rules for about 300 languages from the library of that name."""

    def __init__(self, language: str) -> None:
        self._language = language.replace("_", "-")
        _segment_function()

    def __call__(self, text: str) -> list[str]:
        segment = _segment_function()
        found: list[str] = []
        piece: list[str] = []
        size = 0
        for paragraph in paragraphs(text):
            piece.append(paragraph)
            size += len(paragraph)
            if size > _PIECE_CHARS:
                found.extend(segment(self._language, "\n\n".join(piece)))
                piece, size = [], 0
        if piece:
            found.extend(segment(self._language, "\n\n".join(piece)))
        return [clean for sentence in found if (clean := sentence.strip())]


@SENTENCE_SPLITTERS.register("sentencex")
def _sentencex(language: str) -> SentenceSplitter:
    return _Sentencex(language)


@SENTENCE_SPLITTERS.register("paragraphs")
def _paragraphs(language: str) -> SentenceSplitter:
    """No library: a paragraph counts as one sentence."""
    del language
    return _split_paragraphs


@SENTENCE_SPLITTERS.register("lines")
def _lines(language: str) -> SentenceSplitter:
    """No library: the text has one sentence a line already."""
    del language
    return _split_lines


def _split_paragraphs(text: str) -> list[str]:
    return list(paragraphs(text))


def _split_lines(text: str) -> list[str]:
    return [clean for line in text.split("\n") if (clean := line.strip())]


def _segment_function() -> Callable[[str, str], list[str]]:
    try:
        from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise MissingDependencyError(
            "sentencex", extra="train", purpose="splitting text into sentences"
        ) from error
    return segment
