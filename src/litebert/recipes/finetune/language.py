"""Whether texts are of the language of a pretrained encoder: how much of them its vocabulary can read."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from litebert.text.encoding import PieceText
    from litebert.text.tokenizer import Tokenizer

__all__ = ["MIN_READABLE", "readable_share"]

MIN_READABLE: Final = 0.5
"""Share of letters below which a vocabulary is of another language or script."""
SAMPLE_TEXTS: Final = 200
SAMPLE_CHARACTERS: Final = 200
"""Looked at of each text of the sample."""


def readable_share(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """Return the share of the letters of words that stand in a known piece of two letters or more.

    Letter by letter many scripts are known to a vocabulary, which says nothing of their words.
    Words of one letter do not count; 1.0 where there are no others.

    Args:
        tokenizer: of the encoder.
        texts: of the task; a sample that is spread over them is read.
    """
    step = max(1, len(texts) // SAMPLE_TEXTS)
    read = total = 0
    for text in itertools.islice(texts, 0, None, step):
        found = _count(tokenizer.pieces(text[:SAMPLE_CHARACTERS]), tokenizer.unk_id)
        read, total = read + found[0], total + found[1]
    return read / total if total else 1.0


def _count(pieces: PieceText, unknown: int) -> tuple[int, int]:
    """Return letters that are read, and letters of words of more than one."""
    text = pieces.text
    is_letter = [unicodedata.category(character)[0] in "LM" for character in text]
    in_word = [False] * len(text)
    for found, run in itertools.groupby(range(len(text)), is_letter.__getitem__):
        places = list(run)
        if found and len(places) > 1:
            for place in places:
                in_word[place] = True
    read = 0
    for piece, (start, end) in zip(pieces.ids, pieces.spans, strict=True):
        letters = sum(in_word[start:end])
        if piece != unknown and letters > 1:
            read += letters
    return min(read, sum(in_word)), sum(in_word)
