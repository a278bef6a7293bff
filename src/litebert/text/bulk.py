"""Token ids and word starts of many texts at once, for corpora: quick, and equal to `Tokenizer`.

Each piece stands for so many characters of the cleaned text, and each character of the original
becomes so many of them. Where both counts agree for a text, its pieces find their places by
adding up; where they do not (characters that merge, joined emoji), the text goes the slow way through
exact spans. So do all texts of a tokenizer that is only a `tokenizer.json`.

Differs from `Tokenizer`: a special token that a text spells out is not that token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import sentencepiece
import tokenizers
from numpy.typing import NDArray

from litebert.text.bulk_words import SPACE, CharacterTable, bulk_boundaries, kind_table
from litebert.text.fast import FastPieces
from litebert.text.folder import read_pieces
from litebert.text.normalize import TextNormalizer
from litebert.text.spiece import BLANK, SpmPieces
from litebert.text.spm_model import BYTE
from litebert.text.words import word_flags

__all__ = ["BulkEncoder", "BulkTokens"]

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_MAX_EXPANSION: Final = 254
_REPLACEMENT: Final = "\ufffd"


@dataclass(frozen=True, slots=True)
class BulkTokens:
    """The pieces of N texts, T in all.

    Attributes:
        ids: token ids, int32 [T].
        word_starts: whether each token begins a word, bool [T].
        lengths: tokens of each text, int64 [N]; 0 where nothing remains of it.
        num_unknown: tokens that are unknown.
        num_slow: texts that went the slow way.
    """

    ids: NDArray[np.int32]
    word_starts: Bools
    lengths: Ints
    num_unknown: int
    num_slow: int


class BulkEncoder:
    """Encodes many texts at once with the tokenizer of a folder."""

    def __init__(self, pieces: SpmPieces | FastPieces) -> None:
        self._pieces = pieces
        self._unknown = pieces.special_ids[pieces.special.unk]
        self._special = pieces.special.pattern()
        self._has_quotes = isinstance(pieces, SpmPieces)
        self._kinds = kind_table()
        processor = _processor(pieces) if isinstance(pieces, SpmPieces) else None
        self._expansions = _expansion_table(_cleaner(pieces, processor))
        self._unknown_sizes = _unknown_sizes(pieces, processor)
        self._piece_lengths, self._is_byte = _piece_lengths(pieces)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> BulkEncoder:
        """Read the tokenizer of a folder.

        Raises:
            CheckpointError: nothing usable there.
        """
        return cls(read_pieces(Path(folder)))

    @property
    def size(self) -> int:
        """Number of vocabulary entries."""
        return self._pieces.size

    def encode(self, texts: Sequence[str]) -> BulkTokens:
        """Return the tokens of texts, without special tokens.

        Args:
            texts: any strings; some thousand short ones at a time are quickest.
        """
        texts = self._plain(texts)
        rows = self._pieces.encode_batch(texts)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum()))
        del rows
        if self._pieces.kind == "json":  # lone blank marks have other places in such pipelines
            starts, slow = np.zeros(len(ids), np.bool_), np.flatnonzero(lengths)
        else:
            starts, slow = self._word_starts(texts, ids, lengths)
        ends = np.cumsum(lengths)
        for index in slow.tolist():
            stop = int(ends[index])
            spans = self._pieces.spans(texts[index])
            starts[stop - int(lengths[index]) : stop] = word_flags(texts[index], spans)
        unknown = int(np.count_nonzero(ids == self._unknown))
        return BulkTokens(ids, starts, lengths, unknown, len(slow))

    def _plain(self, texts: Sequence[str]) -> list[str]:
        """Put a blank into special tokens that a text spells out, so that they are none."""
        special = self._special
        if special.search("\n".join(texts)) is None:  # one search is quicker than thousands
            return list(texts)
        return [
            special.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
            if special.search(text)
            else text
            for text in texts
        ]

    def _word_starts(
        self, texts: list[str], ids: NDArray[np.int32], lengths: Ints
    ) -> tuple[Bools, Ints]:
        """Return the flag of each token, and the texts whose flags must be found otherwise."""
        if not len(ids):
            return np.zeros(0, np.bool_), np.zeros(0, np.int64)
        joined = "\n".join(texts) + "\n"
        if self._has_quotes and ("``" in joined or "''" in joined):
            # The clean-up makes one character of such a pair; a word begins at its first anyway.
            texts = [text.replace("``", '"').replace("''", '"') for text in texts]
            joined = "\n".join(texts) + "\n"
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        text_ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1)
        kinds = self._kinds(codes)
        begins, hard = bulk_boundaries(kinds)
        expansions = self._expansions(codes)

        # Characters of the cleaned text: where each comes from, and how many each text has.
        totals = np.cumsum(expansions, dtype=np.int64)[text_ends - 1]
        first_char = np.concatenate([[0], totals[:-1]])
        totals = totals - first_char
        is_simple = bool(expansions.max(initial=0) <= 1)
        origin = (
            np.flatnonzero(expansions)
            if is_simple
            else np.repeat(np.arange(len(codes)), expansions)
        )

        # Pieces: how many of these characters each takes, and which is its first.
        rows = np.repeat(np.arange(len(texts)), lengths)
        sizes = self._piece_lengths[ids].astype(np.int64)
        unknown = np.flatnonzero(ids == self._unknown)
        sums = np.bincount(rows, weights=sizes, minlength=len(texts)).astype(np.int64)
        is_slow = np.zeros(len(texts), np.bool_)
        if len(unknown):
            owners = rows[unknown]
            many = np.bincount(owners, minlength=len(texts)) > 1
            sizes[unknown] = np.where(many[owners], 0, (totals - sums)[owners])
            for index in np.flatnonzero(many).tolist():
                found = self._unknown_sizes(texts[index])
                places = unknown[slice(*np.searchsorted(owners, [index, index + 1]))]
                if len(found) == len(places):
                    sizes[places] = found
            is_slow[owners[sizes[unknown] < 1]] = True
            sums = np.bincount(rows, weights=sizes, minlength=len(texts)).astype(np.int64)
        is_slow |= (sums != totals) | ((totals == 0) & (lengths > 0))
        is_slow[np.searchsorted(text_ends, hard, side="right")] = True
        if self._is_byte is not None:
            is_slow[rows[self._is_byte[ids]]] = True

        before = np.cumsum(sizes) - sizes  # characters of all earlier pieces
        row_starts = np.cumsum(lengths) - lengths
        shift = first_char - before[np.minimum(row_starts, len(ids) - 1)]
        first = before + shift[rows]
        is_last = first >= (first_char + totals)[rows]
        place = origin[np.clip(first, 0, max(len(origin) - 1, 0))] if len(origin) else first * 0
        flags = begins[place] & ~is_last
        is_blank = sizes == 0
        if is_blank.any():
            # A lone blank mark stands for the piece behind it; both are one word.
            follows = np.zeros(len(ids), np.bool_)
            follows[1:] = is_blank[:-1] & (rows[1:] == rows[:-1])
            flags &= ~follows
            touches = is_blank & ~is_last & (place > 0) & (kinds[place - 1] != SPACE)
            is_slow[rows[touches]] = True
        if not is_simple:
            last = origin[np.clip(first + sizes - 1, 0, len(origin) - 1)]
            previous = origin[np.clip(first - 1, 0, len(origin) - 1)]
            inside = (first > first_char[rows]) & (previous == place) & ~is_blank
            flags &= ~inside  # a further part of one character (½)
            is_slow[rows[inside & (last != place)]] = True
        return flags, np.flatnonzero(is_slow & (lengths > 0))


def _expansion_table(clean: Callable[[str], str]) -> CharacterTable:
    """How many characters other than blanks each character becomes in the cleaned text."""

    def count(code: int) -> int:
        character = _REPLACEMENT if 0xD800 <= code <= 0xDFFF else chr(code)
        return min(len("".join(clean(character).split())), _MAX_EXPANSION)

    return CharacterTable(count)


def _processor(pieces: SpmPieces) -> Any:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(pieces.data)
    return processor


def _cleaner(pieces: SpmPieces | FastPieces, processor: Any) -> Callable[[str], str]:
    """Return what the tokenizer does to a text before it looks for pieces."""
    if isinstance(pieces, SpmPieces):
        own = TextNormalizer(pieces.rules)
        return lambda text: cast(str, processor.normalize(own.normalize(text))).replace(BLANK, " ")
    normalizer: Any = tokenizers.Tokenizer.from_str(pieces.pipeline_json).normalizer
    if normalizer is None:
        return lambda text: text
    return lambda text: cast(str, normalizer.normalize_str(text)).replace(BLANK, " ")


def _unknown_sizes(pieces: SpmPieces | FastPieces, processor: Any) -> Callable[[str], list[int]]:
    """Return what gives the characters of each unknown piece of a text, without blank marks."""
    if not isinstance(pieces, SpmPieces):
        return lambda text: []  # noqa: ARG005 - WordPiece: the slow way
    known = frozenset(pieces.model.pieces)
    normalizer = TextNormalizer(pieces.rules)

    def sizes(text: str) -> list[int]:
        found = cast(list[str], processor.encode(normalizer.normalize(text), out_type=str))
        return [len(piece) - piece.count(BLANK) for piece in found if piece not in known]

    return sizes


def _piece_lengths(pieces: SpmPieces | FastPieces) -> tuple[NDArray[np.int32], Bools | None]:
    """Return the characters of each piece without blank marks [V], and which pieces are bytes."""
    unknown = pieces.special_ids[pieces.special.unk]
    if isinstance(pieces, SpmPieces):
        entries = list(pieces.model.pieces)
        is_byte = np.asarray([kind == BYTE for kind in pieces.model.kinds], np.bool_)
    else:
        entries = [entry.removeprefix("##") for entry in pieces.vocabulary]
        is_byte = np.zeros(1, np.bool_)
    lengths = np.asarray([len(entry.replace(BLANK, "")) for entry in entries], np.int32)
    lengths[unknown] = 0
    return lengths, is_byte if bool(is_byte.any()) else None
