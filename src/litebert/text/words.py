"""Where words begin in a text, for any script, from the characters alone.

Rule: letters, digits and `_` make words; an apostrophe between letters and a point or comma
between digits stay inside. Each Chinese character, punctuation mark and symbol is a word of its
own; Hiragana and Katakana make one word per run; scripts written without blanks and without
such runs (Thai, Lao, Khmer, Burmese, Tibetan) may begin a word at every base character.
Marks, joiners and what a joiner joins belong to the character before them.

Source: a simplification of Unicode Standard Annex 29 (word boundaries).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

__all__ = ["character_boundaries", "character_kind", "word_boundaries", "word_flags"]


# One letter per kind of character; a text becomes a string of these, which a pattern then cuts.
_SPACE: Final = " "
_EXTEND: Final = "e"
_JOIN: Final = "j"
_LETTER: Final = "w"
_DIGIT: Final = "d"
_HIRAGANA: Final = "h"
_KATAKANA: Final = "k"
_LETTER_JOINT: Final = "q"
_DIGIT_JOINT: Final = "p"
_SINGLE: Final = "s"
"""Begins a word wherever it stands: Chinese, symbols, punctuation, scripts without blanks."""

_WORD: Final = re.compile(
    r"[wd][wdej]*+(?:(?:(?<=w)q(?=w)|(?<=d)p(?=d))[wdej]*+)*+"
    r"|h[hej]*+|k[kej]*+|[sqp][ej]*+(?:(?<=j)[^ ][ej]*+)*+|[ej]++"
)

_LETTER_JOINTS: Final = frozenset("'’·‧")
_DIGIT_JOINTS: Final = frozenset(".,٫٬")
_PROLONGED: Final = frozenset("ーｰ")
_ZERO_WIDTH_SPACE: Final = 0x200B
_JOINER: Final = 0x200D
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)

_HIRAGANA_RANGES: Final = ((0x3041, 0x309F), (0x1B001, 0x1B11F))
_KATAKANA_RANGES: Final = ((0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F))
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

_BLOCKS: Final = (
    (_SINGLE, _SINGLES),
    (_HIRAGANA, _HIRAGANA_RANGES),
    (_KATAKANA, _KATAKANA_RANGES),
)


def word_boundaries(text: str) -> bytearray:
    """Return one byte per character of `text`: 1 where a word begins, else 0."""
    flags = bytearray(len(text))
    for match in _WORD.finditer(text.translate(_KINDS)):
        flags[match.start()] = 1
    return flags


def character_boundaries(text: str) -> bytearray:
    """Return one byte per character of `text`: 1 where one begins that is no part of the one before.

    Marks, joiners and what a joiner joins are parts of it, blanks begin nothing.
    """
    flags = bytearray(len(text))
    before = _SPACE
    for place, kind in enumerate(text.translate(_KINDS)):
        is_part = before != _SPACE and (before == _JOIN or kind in (_EXTEND, _JOIN))
        flags[place] = kind != _SPACE and not is_part
        before = kind
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


class _KindTable(dict[int, str]):
    """Code point -> kind, worked out on first use."""

    def __missing__(self, code: int) -> str:
        kind = self[code] = character_kind(code)
        return kind


def character_kind(code: int) -> str:
    """Return the kind of a character, one letter; a blank is " ", see the pattern above."""
    character = chr(code)
    if character.isspace() or code == _ZERO_WIDTH_SPACE:
        return _SPACE
    if character in _LETTER_JOINTS:
        return _LETTER_JOINT
    if character in _DIGIT_JOINTS:
        return _DIGIT_JOINT
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf" or character in _PROLONGED or code in _SKIN_TONES:
        return _JOIN if code == _JOINER else _EXTEND
    for kind, ranges in _BLOCKS:
        if any(first <= code <= last for first, last in ranges):
            return kind
    if character.isdigit():
        return _DIGIT
    return _LETTER if category[0] in "LN" or category == "Pc" else _SINGLE


_KINDS: Final = _KindTable()
