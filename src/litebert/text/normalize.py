"""ALBERT's own text clean-up before SentencePiece, with the way back to the original characters.

Steps, in the official order: collapse white space, turn doubled back-ticks and apostrophes into a
double quote, decompose (NFKD) and drop combining marks, lower-case. Each is a map of single
characters, so it is linear in the text even for a million combining marks.

Source: `preprocess_text` in google-research/albert `tokenization.py`; the quote rule is
transformers' addition.
Differs from the official code: lower-casing goes character by character (so a capital sigma
always becomes σ, never ς), and a lone surrogate becomes U+FFFD instead of a crash.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["AlignedText", "TextNormalizer", "TextRules"]

REPLACEMENT: Final = "�"
_MAX_CACHED_CHARACTERS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class TextRules:
    """What is done to the text, named as in `tokenizer_config.json`.

    Attributes:
        do_lower_case: lower-case everything.
        keep_accents: leave combining marks and compatibility characters alone.
        remove_space: trim, and turn each run of white space into one blank.
    """

    do_lower_case: bool = True
    keep_accents: bool = False
    remove_space: bool = True


@dataclass(frozen=True, slots=True)
class AlignedText:
    """Normalised text and where each of its characters came from.

    Attributes:
        text: the normalised text, N characters.
        starts: N indices into the original, non-decreasing.
        ends: N exclusive ends in the original; dropped marks belong to the letter before them.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


class TextNormalizer:
    """Applies `TextRules` to text."""

    def __init__(self, rules: TextRules) -> None:
        self.rules = rules
        self._table = _CharacterTable(rules)

    def normalize(self, text: str) -> str:
        """Return the normalised text."""
        if self.rules.remove_space:
            text = " ".join(text.split())
        text = text.replace("``", '"').replace("''", '"')
        if text.isascii():
            return text.lower() if self.rules.do_lower_case else text
        return text.translate(self._table)

    def align(self, text: str) -> AlignedText:
        """Return the normalised text, equal to `normalize(text)`, with its origins."""
        plain = self.normalize(text)
        inner = text.strip() if self.rules.remove_space else text
        if len(plain) == len(inner) and self._keeps_places(inner):
            first = len(text) - len(text.lstrip()) if self.rules.remove_space else 0
            last = first + len(inner)
            return AlignedText(plain, range(first, last), range(first + 1, last + 1))
        starts: list[int] = []
        ends: list[int] = []
        for start, end, count in self._walk(text):
            if count:
                starts.extend([start] * count)
                ends.extend([end] * count)
            elif ends and ends[-1] == start:
                position = len(ends)
                owner = starts[-1]
                while position and starts[position - 1] == owner:
                    position -= 1
                    ends[position] = end
        return AlignedText(plain, starts, ends)

    def _keeps_places(self, text: str) -> bool:
        """Whether each character of the text becomes exactly one."""
        if text.count("``") or text.count("''"):
            return False
        if self.rules.remove_space and len(" ".join(text.split())) != len(text):
            return False
        table = self._table
        return text.isascii() or all(len(table[code]) == 1 for code in set(map(ord, text)))

    def _walk(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Yield (start, end, normalised length) for each consumed stretch of the original."""
        table = self._table
        collapse = self.rules.remove_space
        index, size = (len(text) - len(text.lstrip()) if collapse else 0), len(text)
        stop = len(text.rstrip()) if collapse else size
        while index < stop:
            character = text[index]
            end = index + 1
            if collapse and character.isspace():
                while text[end].isspace():  # the text does not end in white space here
                    end += 1
                yield index, end, 1
            elif character in "`'" and text.startswith(character, end):
                end += 1
                yield index, end, 1
            else:
                yield index, end, len(table[ord(character)])
            index = end


class _CharacterTable(dict[int, str]):
    """Code point -> its normalised text, worked out on first use."""

    def __init__(self, rules: TextRules) -> None:
        super().__init__()
        self._rules = rules

    def __missing__(self, code: int) -> str:
        result = self._convert(code)
        if len(self) < _MAX_CACHED_CHARACTERS:
            self[code] = result
        return result

    def _convert(self, code: int) -> str:
        if 0xD800 <= code <= 0xDFFF:
            return REPLACEMENT
        text = chr(code)
        if not self._rules.keep_accents:
            parts = unicodedata.normalize("NFKD", text)
            text = "".join(part for part in parts if not unicodedata.combining(part))
        return text.lower() if self._rules.do_lower_case else text
