"""Word boundaries of many texts at once: the rule of `words`, as array operations.

Equal to `word_boundaries` for every text, except where a joiner (U+200D) follows a symbol, as in
composed emoji; those places are marked, so that the caller can take the slow way there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.text.words import character_kind

__all__ = ["CharacterTable", "bulk_boundaries", "kind_table"]

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.uint32]

_KINDS: Final = " ejwdhkqps"
"""The kinds of `words`; their place here is their number."""
SPACE: Final = _KINDS.index(" ")
_EXTEND, _JOIN, _LETTER, _DIGIT, _HIRAGANA, _KATAKANA, _LETTER_JOINT, _DIGIT_JOINT, _SINGLE = range(
    1, len(_KINDS)
)
_UNSEEN: Final = 255
_ALL_CODES: Final = 0x110000


class CharacterTable:
    """One small number for every character, worked out when the character is first met."""

    def __init__(self, number: Callable[[int], int]) -> None:
        """Wrap `number`: the number of one character code, in [0, 254]."""
        self._number = number
        self._table = np.full(_ALL_CODES, _UNSEEN, np.uint8)

    def __call__(self, codes: Codes) -> Bytes:
        """Return the number of each character code [N]."""
        numbers = self._table[codes]
        if (numbers == _UNSEEN).any():
            for code in np.unique(codes[numbers == _UNSEEN]).tolist():
                self._table[code] = self._number(code)
            numbers = self._table[codes]
        return numbers


def kind_table() -> CharacterTable:
    """Return the table of kinds: the place of each character's kind in `_KINDS`."""
    return CharacterTable(lambda code: _KINDS.index(character_kind(code)))


def bulk_boundaries(kinds: Bytes) -> tuple[Bools, NDArray[np.intp]]:
    """Return where words begin, bool [N], and the places [K] that only `words` can decide.

    Args:
        kinds: kind of each character [N] of texts that are parted by a blank, see `kind_table`.
    """
    before = _shifted(kinds)
    after = np.append(kinds[1:], np.uint8(SPACE))
    extends = (kinds == _EXTEND) | (kinds == _JOIN)
    hard = np.zeros(0, np.intp)
    base, base_before = kinds, before
    if extends.any():
        # The last character that is no mark decides what a mark, and what follows it, belongs to.
        owner = np.arange(len(kinds))
        owner[extends] = 0
        base = kinds[np.maximum.accumulate(owner)]
        base_before = _shifted(base)
        hard = np.flatnonzero((kinds == _JOIN) & (base >= _LETTER_JOINT))
    joint = (kinds == _LETTER_JOINT) & (before == _LETTER) & (after == _LETTER)
    joint |= (kinds == _DIGIT_JOINT) & (before == _DIGIT) & (after == _DIGIT)
    goes_on = extends & (before != SPACE)
    in_word = (base_before == _LETTER) | (base_before == _DIGIT) | _shifted(joint)
    goes_on |= ((kinds == _LETTER) | (kinds == _DIGIT)) & in_word
    goes_on |= (kinds == _HIRAGANA) & (base_before == _HIRAGANA)
    goes_on |= (kinds == _KATAKANA) & (base_before == _KATAKANA)
    goes_on |= joint
    return (kinds != SPACE) & ~goes_on, hard


def _shifted(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values one place later, with 0 (blank, False) in front."""
    result = np.empty_like(values)
    result[:1] = 0
    result[1:] = values[:-1]
    return result
