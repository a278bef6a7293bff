"""The tokenizer of a model folder: text to `Encoding` and back, whatever vocabulary lies there."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import index
from pathlib import Path
from typing import Final, SupportsIndex

from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.models import locate
from litebert.text.encoding import Encoding, PieceText
from litebert.text.fast import FastPieces
from litebert.text.folder import read_pieces
from litebert.text.frequent import frequent_pieces
from litebert.text.narrow import narrow_pieces, with_pieces
from litebert.text.pairs import CHARACTERS_PER_TOKEN, Keep, Truncation, assemble
from litebert.text.save import tokenizer_files, write_files
from litebert.text.spiece import SpmPieces

__all__ = ["Tokenizer", "check_vocabulary_fits"]

MODEL_MAX_LENGTH: Final = 512
"""Positions of every published ALBERT."""

_PADDING_ROWS: Final = 1024
"""More spare rows than this in an embedding table are worth a word in the log."""

_log = logging.getLogger(__name__)


USED_CHUNK: Final = 1000
"""Texts encoded together."""


def batched(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield lists of at most `size` texts."""
    source = iter(texts)
    while chunk := list(islice(source, size)):
        yield chunk


class Tokenizer:
    """Text <-> token ids, with exact character offsets.

    Attributes:
        pad_id: fills sequences up.
        unk_id: stands for what the vocabulary lacks.
        cls_id: opens every sequence.
        sep_id: closes every text.
        mask_id: stands for a hidden token in pretraining.
    """

    def __init__(self, pieces: SpmPieces | FastPieces) -> None:
        self._pieces = pieces
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            pieces.special_ids[word] for word in pieces.special.words
        )

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Tokenizer:
        """Read the tokenizer of a model folder, of a named encoder, or one vocabulary file.

        Raises:
            CheckpointError: nothing usable there.
        """
        return cls(read_pieces(locate(folder)))

    @property
    def kind(self) -> str:
        """One of sentencepiece, wordpiece, or json (a folder with only a `tokenizer.json`)."""
        return self._pieces.kind

    @property
    def vocab_size(self) -> int:
        """Number of vocabulary entries; ids lie in [0, vocab_size)."""
        return self._pieces.size

    @property
    def fingerprint(self) -> str:
        """sha256 (hex) of everything that decides the ids of a text."""
        return self._pieces.fingerprint

    def pieces(self, text: str) -> PieceText:
        """Return the pieces of a text, uncut and without special tokens.

        Raises:
            DataError: not a string.
        """
        return self._piece_texts([text], None, "head")[0]

    def encode(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        truncation: Truncation = "longest_first",
        keep: Keep = "head",
    ) -> Encoding:
        """Encode a text or a pair.

        Args:
            text: any string.
            pair: second text, if any.
            max_length: tokens to keep to, special ones included; None keeps everything. With a
                limit, only the first (or last) 250 x max_length characters are looked at.
            truncation: which text is cut: "longest_first", "only_first" or "only_second".
            keep: which end of a cut text stays: "head" or "tail".

        Raises:
            DataError: not a string.
            SettingsError: the limit cannot be kept, or an unknown word.
        """
        item = text if pair is None else (text, pair)
        return self.encode_batch([item], max_length, truncation, keep)[0]

    def encode_batch(
        self,
        texts: Sequence[str | tuple[str, str]],
        max_length: int | None = None,
        truncation: Truncation = "longest_first",
        keep: Keep = "head",
    ) -> list[Encoding]:
        """Encode many texts or pairs; see `encode`.

        Raises:
            DataError: not a string, or a tuple of another number than two.
            SettingsError: the limit cannot be kept, or an unknown word.
        """
        if isinstance(texts, str):
            raise DataError("texts is one string, expected a list of them; use encode for one text")
        _require_length(max_length)
        for item in texts:
            if isinstance(item, tuple) and len(item) != 2:
                raise DataError(f"a pair has 2 texts, got a tuple of {len(item)}: {item!r:.80}")
        firsts = [item[0] if isinstance(item, tuple) else item for item in texts]
        seconds = [item[1] for item in texts if isinstance(item, tuple)]
        parts = self._piece_texts(firsts, max_length, keep)
        others = iter(self._piece_texts(seconds, max_length, keep))
        return [
            assemble(
                part,
                next(others) if isinstance(item, tuple) else None,
                cls_id=self.cls_id,
                sep_id=self.sep_id,
                max_length=max_length,
                truncation=truncation,
                keep=keep,
            )
            for item, part in zip(texts, parts, strict=True)
        ]

    def _piece_texts(self, texts: list[str], max_length: int | None, keep: Keep) -> list[PieceText]:
        for text in texts:
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DataError(
                    f"a text must be a string, got {type(text).__name__} ({text!r:.60}); "
                    "convert it or drop the row"
                )
        if max_length is None:
            cuts, bases = texts, [0] * len(texts)
        else:
            limit = max(max_length, 1) * CHARACTERS_PER_TOKEN
            bases = [max(len(text) - limit, 0) if keep == "tail" else 0 for text in texts]
            cuts = [text[base : base + limit] for text, base in zip(texts, bases, strict=True)]
        source = self._pieces
        return [
            PieceText(cut, ids, source, base, len(cut) != len(text))
            for text, cut, base, ids in zip(
                texts, cuts, bases, source.encode_batch(cuts), strict=True
            )
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens left out.

        Raises:
            DataError: an id outside the vocabulary, or one that is no whole number.
        """
        for token_id in ids:
            if isinstance(token_id, bool) or not isinstance(token_id, SupportsIndex):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DataError(f"a token id is a whole number, got {token_id!r:.60}")
        ids = [index(token_id) for token_id in ids]
        special = {self.pad_id, self.cls_id, self.sep_id, self.mask_id}
        wrong = [token_id for token_id in ids if not 0 <= token_id < self.vocab_size]
        if wrong:
            raise DataError(
                f"token id {wrong[0]} is outside the vocabulary; ids lie in 0..{self.vocab_size - 1}"
            )
        return self._pieces.decode([token_id for token_id in ids if token_id not in special])

    def token(self, token_id: int) -> str:
        """Return the vocabulary entry of an id in [0, vocab_size)."""
        return self._pieces.token(token_id)

    def unknown_count(self, encoding: Encoding) -> int:
        """Return how many pieces of the encoding are unknown."""
        return encoding.ids.count(self.unk_id)

    def used_ids(self, texts: Iterable[str]) -> set[int]:
        """Return the ids that whole texts consist of.

        Raises:
            DataError: not strings.
        """
        return set(self.piece_counts(texts))

    def piece_counts(self, texts: Iterable[str]) -> Counter[int]:
        """Return how often each id occurs in whole texts.

        Raises:
            DataError: not strings.
        """
        counts: Counter[int] = Counter()
        for chunk in batched(texts, USED_CHUNK):
            for row in self._pieces.encode_batch(chunk):
                counts.update(row)
        return counts

    def narrowed(self, used: Collection[int]) -> tuple[Tokenizer, list[int]]:
        """Return the tokenizer without pieces that are not needed for texts of `used` ids.

        Every such text has the same pieces as before; single characters stay, so that other texts
        have pieces, too, only shorter ones.

        Args:
            used: result of `used_ids`.

        Returns:
            The tokenizer, and the old id of each of its ids, rising.

        Raises:
            CheckpointError: the folder has only a `tokenizer.json`, whose pipeline is not known.
        """
        pieces, old = narrow_pieces(self._pieces, used)
        return Tokenizer(pieces), old

    def cut(
        self, size: int, counts: Mapping[int, int] | None = None
    ) -> tuple[Tokenizer, list[int]]:
        """Return the tokenizer with `size` pieces at most; other words are cut into more of them.

        Args:
            size: most pieces of the new vocabulary, special ones included.
            counts: id -> how often it occurs; None: the first ones stay, in the order of the vocabulary.

        Returns:
            The tokenizer, and the old id of each of its ids, rising.

        Raises:
            SettingsError: fewer than have to stay, or more than there are.
            CheckpointError: the folder has only a `tokenizer.json`, whose pipeline is not known.
        """
        old = frequent_pieces(self._pieces, size, counts)
        return Tokenizer(with_pieces(self._pieces, old)), old

    def files(self, max_length: int = MODEL_MAX_LENGTH) -> dict[str, bytes]:
        """Return file name -> contents of everything that `save_pretrained` writes."""
        return tokenizer_files(self._pieces, max_length)

    def save_pretrained(self, folder: str | Path, max_length: int = MODEL_MAX_LENGTH) -> None:
        """Write the tokenizer files, each atomically, into a folder (made if absent).

        They are `spiece.model` or `vocab.txt`, `tokenizer.json`, `tokenizer_config.json` and
        `special_tokens_map.json`.

        Args:
            folder: where to.
            max_length: written as `model_max_length`.

        Raises:
            CheckpointError: the folder cannot be written.
        """
        write_files(self.files(max_length), Path(folder))


def _require_length(max_length: object) -> None:
    if max_length is None or (isinstance(max_length, int) and not isinstance(max_length, bool)):
        return
    raise SettingsError(f"max_length is {max_length!r:.60}, expected a whole number or None")


def check_vocabulary_fits(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Refuse a vocabulary that has ids beyond the weights.

    Spare rows in the embedding table (padding to a round number) are fine.

    Args:
        tokenizer: the tokenizer.
        vocab_size: rows of the embedding table.

    Raises:
        CheckpointError: fewer rows than vocabulary entries.
    """
    if tokenizer.vocab_size > vocab_size:
        raise CheckpointError(
            f"the vocabulary has {tokenizer.vocab_size} entries but the weights only {vocab_size} "
            "rows: they do not belong together; use the tokenizer files that came with the weights"
        )
    spare = vocab_size - tokenizer.vocab_size
    if spare > _PADDING_ROWS:
        _log.warning(
            "the weights have %d rows more than the vocabulary has entries (%d); "
            "check that they belong together",
            spare,
            tokenizer.vocab_size,
        )
