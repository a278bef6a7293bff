"""What a worker process does: a list of documents in, arrays of their tokens out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.data.document_signatures import band_key_table, document_signatures
from litebert.data.shards.format import dtype_for
from litebert.text.bulk import BulkEncoder
from litebert.text.sentences import sentence_splitter

__all__ = ["DocumentEncoder", "EncodedBatch", "EncodingPlan"]

_SLICE_CHARS: Final = 1 << 18
"""Characters of sentences that are encoded together: bounds the memory of a long document."""
MAX_SENTENCE_CHARS: Final = 20_000
"""A longer sentence is cut at a blank: no text without sentence ends makes one endless sentence."""
_KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class EncodingPlan:
    """What of the settings a worker must know; a worker does not load what only reading needs.

    Attributes:
        sentences: name of the sentence splitter.
        language: ISO code for it.
        eval_fraction: share of documents that are held out, in [0, 1).
        seed: of that choice.
        has_signatures: whether near-duplicates are looked for.
    """

    sentences: str = "sentencex"
    language: str = "en"
    eval_fraction: float = 0.0
    seed: int = 0
    has_signatures: bool = False


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """The tokens of D documents, S sentences, T tokens.

    Attributes:
        ids: token ids [T].
        word_starts: bool [T].
        sentence_lengths: tokens of each sentence, int64 [S], none 0.
        document_lengths: sentences of each document, int64 [D]; 0 where nothing is left.
        characters: characters of each document other than blanks, int64 [D].
        num_bytes: UTF-8 bytes of each document, int64 [D].
        keys: hash of each document, letter case and blanks aside: 16 bytes each.
        is_eval: whether each document is held out, bool [D].
        signatures: MinHash signature of each document [D, 64], when near-duplicates are dropped.
        bands: their band keys [D, 16].
        num_cut: sentences of each document that were cut because they are too long, int64 [D].
    """

    ids: NDArray[Any]
    word_starts: NDArray[np.bool_]
    sentence_lengths: NDArray[np.int64]
    document_lengths: NDArray[np.int64]
    characters: NDArray[np.int64]
    num_bytes: NDArray[np.int64]
    keys: list[bytes]
    is_eval: NDArray[np.bool_]
    signatures: NDArray[np.uint32] | None
    bands: NDArray[np.int64] | None
    num_cut: NDArray[np.int64]


class DocumentEncoder:
    """Splits, encodes and hashes documents; one lives in each worker."""

    def __init__(self, tokenizer: Path, plan: EncodingPlan) -> None:
        """Load the tokenizer and the sentence splitter.

        Raises:
            CheckpointError: no usable tokenizer there.
            SettingsError: no such splitter.
        """
        self._plan = plan
        self._encoder = BulkEncoder.from_pretrained(tokenizer)
        self._dtype = np.dtype(dtype_for(self._encoder.size))
        self._split = sentence_splitter(plan.sentences, plan.language)

    def __call__(self, texts: Sequence[str]) -> EncodedBatch:
        """Encode documents, each on its own: the result does not depend on what it comes with."""
        sentences: list[str] = []
        counts: list[int] = []
        cuts: list[int] = []
        for text in texts:
            before, cut = len(sentences), 0
            for sentence in self._split(text):
                if len(sentence) <= MAX_SENTENCE_CHARS:
                    sentences.append(sentence)
                else:
                    cut += 1
                    sentences.extend(_cut(sentence))
            counts.append(len(sentences) - before)
            cuts.append(cut)
        ids: list[NDArray[Any]] = []
        starts: list[NDArray[np.bool_]] = []
        lengths: list[NDArray[np.int64]] = []
        for part in _slices(sentences):
            tokens = self._encoder.encode(part)
            ids.append(tokens.ids.astype(self._dtype))
            starts.append(tokens.word_starts)
            lengths.append(tokens.lengths)
        all_lengths = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
        owners = np.repeat(np.arange(len(texts)), np.asarray(counts, np.int64))
        kept = all_lengths > 0
        plain = [" ".join(text.casefold().split()) for text in texts]
        keys = [
            hashlib.blake2b(text.encode("utf-8"), digest_size=_KEY_BYTES).digest() for text in plain
        ]
        signatures = document_signatures(plain) if self._plan.has_signatures else None
        return EncodedBatch(
            ids=np.concatenate(ids) if ids else np.zeros(0, self._dtype),
            word_starts=np.concatenate(starts) if starts else np.zeros(0, np.bool_),
            sentence_lengths=all_lengths[kept],
            document_lengths=np.bincount(owners[kept], minlength=len(texts)).astype(np.int64),
            characters=np.asarray([len(text) - text.count(" ") for text in plain], np.int64),
            num_bytes=np.asarray([len(text.encode("utf-8")) for text in texts], np.int64),
            keys=keys,
            is_eval=np.asarray([self._is_held_out(key) for key in keys], np.bool_),
            signatures=signatures,
            bands=None if signatures is None else band_key_table(signatures),
            num_cut=np.asarray(cuts, np.int64),
        )

    def _is_held_out(self, key: bytes) -> bool:
        fraction = self._plan.eval_fraction
        if not fraction:
            return False
        salt = self._plan.seed.to_bytes(8, "little")
        drawn = hashlib.blake2b(key, digest_size=8, salt=salt).digest()
        return int.from_bytes(drawn, "little") < fraction * 2.0**64


def _cut(sentence: str) -> Iterator[str]:
    while len(sentence) > MAX_SENTENCE_CHARS:
        at = sentence.rfind(" ", 1, MAX_SENTENCE_CHARS)
        at = at if at > 0 else MAX_SENTENCE_CHARS
        yield sentence[:at]
        sentence = sentence[at:].lstrip()
    if sentence:
        yield sentence


def _slices(sentences: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for sentence in sentences:
        part.append(sentence)
        size += len(sentence)
        if size >= _SLICE_CHARS:
            yield part
            part, size = [], 0
    if part:
        yield part
