"""Where words begin in a text, for any script, from the characters alone.

Rule: letters, digits and `_` make words; an apostrophe between letters and a point or comma
between digits stay inside. Each Chinese character, punctuation mark and symbol is a word of its
own; Hiragana and Katakana make one word per run; scripts written without blanks and without
such runs (Thai, Lao, Khmer, Burmese, Tibetan) may begin a word at every base character.
Marks, joiners and what a joiner joins belong to the character before them.

Source: a simplification of Unicode Standard Annex 29 (word boundaries).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

__all__ = ["word_boundaries", "word_flags"]


class _Kind(IntEnum):
    SPACE = 0
    EXTEND = 1
    WORD = 2
    HIRAGANA = 3
    KATAKANA = 4
    SINGLE = 5
    """Begins a word wherever it stands: Chinese, symbols, punctuation, scripts without blanks."""


_RUNS: Final = frozenset({_Kind.WORD, _Kind.HIRAGANA, _Kind.KATAKANA})
_LETTER_JOINTS: Final = frozenset("'’·‧")
_DIGIT_JOINTS: Final = frozenset(".,٫٬")
_JOINER: Final = "\u200d"
_PROLONGED: Final = frozenset("ーｰ")

_HIRAGANA: Final = ((0x3041, 0x309F), (0x1B001, 0x1B11F))
_KATAKANA: Final = ((0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F))
_SINGLES: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x19E0, 0x19FF),
    (0x2E80, 0x2FDF),  # Chinese radicals
    (0x3005, 0x3007),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FF),
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)

Ranges = tuple[tuple[int, int], ...]


def word_boundaries(text: str) -> bytearray:
    """Return one byte per character of `text`: 1 where a word begins, else 0."""
    flags = bytearray(len(text))
    previous = _Kind.SPACE
    joined = False
    inside = False
    for index, character in enumerate(text):
        kind = _KINDS[ord(character)]
        if kind is _Kind.EXTEND and previous is not _Kind.SPACE:
            joined = character == _JOINER
            continue
        if inside:  # this word character follows a joint, as the t of don't does
            inside = False
        elif kind is _Kind.SPACE or joined or (kind is previous and kind in _RUNS):
            pass
        elif previous is _Kind.WORD and _is_joint(text, index):
            inside = True
            kind = _Kind.WORD
        else:
            flags[index] = 1
        previous, joined = kind, False
    return flags


def word_flags(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Return, for each piece span, whether that piece begins a word of `text`.

    A lone blank mark (an empty span before its word) takes the flag of the piece after it, so
    that both are masked together.

    Args:
        text: the text, any length.
        spans: (start, end) of each piece, never overlapping, never going back.
    """
    flags = word_boundaries(text)
    result: list[bool] = []
    last_start, last_end = -1, 0
    for start, end in spans:
        is_start = start < len(text) and bool(flags[start]) and start != last_start
        if start == end and start == last_end and start > 0:
            is_start = False  # a further part of the character before
        if is_start:
            last_start = start
        result.append(is_start)
        last_end = end
    return result


def _is_joint(text: str, index: int) -> bool:
    """Whether the character holds two halves of a word or number together."""
    character = text[index]
    after = text[index + 1 : index + 2]
    if character in _LETTER_JOINTS:
        return text[index - 1].isalpha() and after.isalpha()
    return character in _DIGIT_JOINTS and text[index - 1].isdigit() and after.isdigit()


class _KindTable(dict[int, _Kind]):
    """Code point -> kind, worked out on first use."""

    def __missing__(self, code: int) -> _Kind:
        kind = self[code] = _kind(code)
        return kind


def _kind(code: int) -> _Kind:
    character = chr(code)
    if character.isspace() or code == 0x200B:  # the zero-width space parts words
        return _Kind.SPACE
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf" or character in _PROLONGED:
        return _Kind.EXTEND
    if 0x1F3FB <= code <= 0x1F3FF:  # skin tones
        return _Kind.EXTEND
    if _within(code, _SINGLES):
        return _Kind.SINGLE
    if _within(code, _HIRAGANA):
        return _Kind.HIRAGANA
    if _within(code, _KATAKANA):
        return _Kind.KATAKANA
    return _Kind.WORD if category[0] in "LN" or category == "Pc" else _Kind.SINGLE


def _within(code: int, ranges: Ranges) -> bool:
    return any(first <= code <= last for first, last in ranges)


_KINDS: Final = _KindTable()
