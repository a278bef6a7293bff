"""Texts of shards, or of a file, as numbered examples in one fixed random order."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.data.batch import EncodedExample
from litebert.data.chunks import ChunkIndex
from litebert.text.tokenizer import Tokenizer

__all__ = ["EncodedTexts", "ShardTexts"]

SPECIALS: Final = 2
"""[CLS] before and [SEP] after a text."""
RANK_OFFSET: Final = 50
"""Takes the edge off the first pieces, the function words, as in Mandelbrot's form of Zipf's law."""


class ShardTexts:
    """Chunks of shards between [CLS] and [SEP]: a `litebert.compress.teacher_cache.TextSet`.

    Neighbours in the numbering have nothing to do with each other, so that any run of numbers is a
    fair sample.
    """

    def __init__(
        self,
        index: ChunkIndex,
        tokenizer: Tokenizer,
        *,
        seed: int,
        limit: int | None = None,
        replaced: float = 0.0,
        by_rank: bool = False,
    ) -> None:
        """Choose an order.

        Args:
            index: chunks of at most `max_length - 2` tokens.
            tokenizer: of the shards.
            seed: of the order.
            limit: most texts; None: all.
            replaced: share of the pieces of every second text that random pieces take the place of.
            by_rank: draw them by their place in the vocabulary; else all alike.
        """
        rng = np.random.default_rng(np.random.SeedSequence([seed, len(index)]))
        self._chunks = rng.permutation(len(index))[:limit]
        self._index = index
        self._ends = (tokenizer.cls_id, tokenizer.sep_id)
        special = (*self._ends, tokenizer.pad_id, tokenizer.unk_id, tokenizer.mask_id)
        self._plain = (max(special) + 1, tokenizer.vocab_size)
        self._ranked = _ranked(tokenizer, special) if by_rank and replaced else None
        self._seed, self._replaced = seed, replaced

    def __len__(self) -> int:
        return len(self._chunks)

    @property
    def fingerprint(self) -> str:
        """Hex digest of the shards, how they are cut, and the order."""
        digest = hashlib.sha256(f"{self._index.fingerprint} {self._ends}".encode())
        digest.update(self._chunks.astype("<i8").tobytes())
        if self._replaced:
            digest.update(f"{self._seed} {self._replaced} {self._plain}".encode())
        if self._ranked is not None:
            digest.update(self._ranked[0].astype("<i8").tobytes())
        return digest.hexdigest()

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """[N] tokens of each."""
        return self._index.lengths[self._chunks] + SPECIALS

    def example(self, number: int) -> EncodedExample:
        """Return one text."""
        chunk = self._index.chunk(int(self._chunks[number]))
        ids = np.empty(len(chunk) + SPECIALS, np.int32)
        ids[0], ids[-1] = self._ends
        ids[1:-1] = chunk.ids
        if self._replaced and number % 2:
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, number]))
            places = 1 + np.flatnonzero(rng.random(len(chunk)) < self._replaced)
            if self._ranked is None:
                ids[places] = rng.integers(*self._plain, len(places))
            else:
                words, cumulative = self._ranked
                ids[places] = words[np.searchsorted(cumulative, rng.random(len(places)))]
        return EncodedExample(ids, np.zeros(len(ids), np.int32), None, number)


def _ranked(
    tokenizer: Tokenizer, special: Collection[int]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return pieces of several characters in the order of the vocabulary, and P(place <= i)."""
    words = np.asarray(
        [
            number
            for number in range(tokenizer.vocab_size)
            if number not in special and _is_word(tokenizer.token(number))
        ],
        np.int64,
    )
    chances = np.cumsum(1 / (RANK_OFFSET + np.arange(len(words))))
    return words, chances / chances[-1:]


def _is_word(piece: str) -> bool:
    """Several letters or digits; no special or unused piece."""
    bare = piece.removeprefix("##").removeprefix("\u2581")
    return len(bare) > 1 and bare.isalnum()


class EncodedTexts:
    """Examples in memory: a `litebert.compress.teacher_cache.TextSet`; `index` is their place."""

    def __init__(self, examples: Sequence[EncodedExample]) -> None:
        """Take examples in the order that they are numbered by."""
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    @property
    def fingerprint(self) -> str:
        """Hex digest of ids, segments and labels."""
        digest = hashlib.sha256()
        for example in self._examples:
            digest.update(np.asarray(example.ids, "<i4").tobytes())
            digest.update(np.asarray(example.type_ids, "<i4").tobytes())
            digest.update(f"{len(example)} {example.label!r}".encode())
        return digest.hexdigest()

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """[N] tokens of each."""
        return np.asarray([len(example) for example in self._examples], np.int32)

    def example(self, number: int) -> EncodedExample:
        """Return one of them."""
        return self._examples[number]
