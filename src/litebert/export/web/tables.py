"""What happens to single characters, as tables for a program that knows another version of Unicode.

Browsers bring their own version, which changes with every release; ids must not change with it.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

__all__ = ["assigned", "characters", "flat_ranges", "grouped", "hangul", "map_table", "mark_table"]

_SURROGATES: Final = range(0xD800, 0xE000)
_HANGUL: Final = range(0xAC00, 0xD7A4)
_L, _V, _T = 0x1100, 0x1161, 0x11A7


def characters() -> Iterator[int]:
    """Yield every code point that a text of Unicode can hold."""
    yield from range(_SURROGATES.start)
    yield from range(_SURROGATES.stop, sys.maxunicode + 1)


def assigned() -> Iterator[int]:
    """Yield the code points that Python's Unicode has a character for; nothing happens to the others."""
    category = unicodedata.category
    return (code for code in characters() if category(chr(code)) not in ("Cn", "Co"))


def flat_ranges(codes: Iterable[int]) -> list[int]:
    """Return rising code points as `[first, last, first, last, ...]`."""
    flat: list[int] = []
    for code in codes:
        if flat and code == flat[-1] + 1:
            flat[-1] = code
        else:
            flat += [code, code]
    return flat


def hangul(code: int) -> str:
    """Return a syllable block as its letters. Source: Unicode Standard 3.12, Hangul decomposition."""
    place = code - _HANGUL.start
    last = place % 28
    parts = [_L + place // 588, _V + place % 588 // 28, *([_T + last] if last else [])]
    return "".join(map(chr, parts))


def map_table(pairs: Iterable[tuple[int, str]]) -> dict[str, Any]:
    """Return what each character becomes, as the object that `local/tables.js` reads.

    Args:
        pairs: (code point, text that takes its place), rising; characters that are left out stay.

    Returns:
        `removed`: ranges that go; `spaced`: ranges that get a blank on both sides; `hangul`: whether
        syllable blocks become their letters; `map`: the other ones that change.
    """
    removed: list[int] = []
    spaced: list[int] = []
    others: dict[str, str] = {}
    syllables = 0
    for code, text in pairs:
        character = chr(code)
        if text == character:
            continue
        if not text:
            removed.append(code)
        elif text == f" {character} ":
            spaced.append(code)
        else:
            others[character] = text
            syllables += code in _HANGUL and text == hangul(code)
    has_hangul = syllables == len(_HANGUL)
    if has_hangul:
        for code in _HANGUL:
            del others[chr(code)]
    return {
        "removed": flat_ranges(removed),
        "spaced": flat_ranges(spaced),
        "hangul": has_hangul,
        "map": others,
    }


def mark_table(pairs: Iterable[tuple[int, str]], usual: str) -> dict[str, Any]:
    """Return a letter for each character, as the object that `local/tables.js` reads.

    Args:
        pairs: (code point, letter), rising.
        usual: the letter of all that are left out.

    Returns:
        `ranges`, the `letters` of these, and the `usual` one.
    """
    ranges: list[int] = []
    letters: list[str] = []
    for code, letter in pairs:
        if letter == usual:
            continue
        if letters and letters[-1] == letter and ranges[-1] == code - 1:
            ranges[-1] = code
        else:
            ranges += [code, code]
            letters.append(letter)
    return {"ranges": ranges, "letters": "".join(letters), "usual": usual}


def grouped(codes: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield parts of at most `size`."""
    for start in range(0, len(codes), size):
        yield codes[start : start + size]
