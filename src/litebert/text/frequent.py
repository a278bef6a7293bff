"""Which pieces of a vocabulary stay when only so many may, whatever the texts will be."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from litebert.errors import SettingsError
from litebert.text.fast import FastPieces
from litebert.text.narrow import bare_pieces, needed_pieces
from litebert.text.spiece import SpmPieces

__all__ = ["frequent_pieces"]

_UNUSED: Final = re.compile(r"\[unused\d+\]")


def frequent_pieces(
    pieces: SpmPieces | FastPieces, size: int, counts: Mapping[int, int] | None = None
) -> list[int]:
    """Return the ids of the pieces that stay, `size` at most, rising.

    Special pieces, bytes, ASCII and single characters but letters stay; then pieces of several
    characters, the most frequent ones first, each with the letters that it is made of, so that the
    letters of scripts that no word is kept of go.

    Args:
        pieces: the vocabulary.
        size: of the new one; it has fewer where no piece that is left fits with its letters, and
            never entries that are marked as unused.
        counts: id -> how often it occurs in texts; where there is none, or they are equal: the order
            of the vocabulary, which is that of frequency in what it was made from.

    Raises:
        SettingsError: fewer than have to stay, or more than there are.
    """
    bare, needed = bare_pieces(pieces), needed_pieces(pieces)
    kept = {index for index, text in enumerate(bare) if index in needed or _stays(text)}
    if not len(kept) <= size <= len(bare):
        raise SettingsError(
            f"the vocabulary cannot have {size:,} pieces: {len(kept):,} have to stay, and there are "
            f"{len(bare):,}"
        )
    forms: dict[str, list[int]] = {}
    for index, text in enumerate(bare):
        if len(text) == 1:
            forms.setdefault(text, []).append(index)
    known = counts or {}
    for index in sorted(range(len(bare)), key=lambda index: (-known.get(index, 0), index)):
        text = bare[index]
        if index in kept or len(text) < 2 or _UNUSED.fullmatch(text):
            continue
        new = {index, *(form for letter in text for form in forms.get(letter, ()))} - kept
        if len(kept) + len(new) <= size:
            kept |= new
    return sorted(kept)


def _stays(bare: str) -> bool:
    """ASCII, or no letter: digits, marks of punctuation and signs belong to no script alone."""
    return len(bare) == 1 and (bare.isascii() or unicodedata.category(bare)[0] not in "LM")
