"""Shards cut into chunks: the stretches of one document that pretraining examples are made of.

A chunk is as many whole consecutive sentences as fit into its target length; a sentence that is
longer than the target is cut into about equal parts where words begin. Chunks follow each other
without a gap and never cross a document, so a shard's chunks are one rising row of token offsets.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from litebert.data.chunk_file import read_chunk_file, write_chunk_file
from litebert.data.shards import Shard, ShardSet
from litebert.errors import SettingsError

__all__ = ["Chunk", "ChunkIndex"]

_DRAWS: Final = 4096
_STREAM: Final = 0x63_68_75_6E_6B
"""Sets the random numbers of this module apart from those of other uses of the same seed."""

UInt32 = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """A stretch of one document.

    Attributes:
        ids: int32 [n] token ids, no special tokens, n >= 1.
        word_starts: bool [n], True where a word begins; the first is always True.
        sentence_ends: [s] offsets inside the chunk where a sentence ends (or is cut), the last is n.
        document: number of the document in the shard set.
        index: number of the chunk in the index.
    """

    ids: NDArray[np.int32]
    word_starts: NDArray[np.bool_]
    sentence_ends: NDArray[np.int64]
    document: int
    index: int

    def __len__(self) -> int:
        return len(self.ids)


class ChunkIndex:
    """All chunks of a shard set, numbered from 0: four bytes each, found by arithmetic.

    Differs from the official data builder: that one adds sentences until the target is passed and
    then cuts tokens off either end; here nothing overflows and no token is lost.
    """

    def __init__(
        self, shards: ShardSet, starts: Sequence[UInt32], settings: dict[str, Any]
    ) -> None:
        """Wrap offsets that `build` or `load` has made.

        Args:
            shards: the shards that were cut.
            starts: for each shard the token offset of each chunk, then T.
            settings: what the cutting depends on.
        """
        self.shards = shards
        self.settings = dict(settings)
        self._starts = tuple(starts)
        self._firsts = [0]
        for bounds in self._starts:
            self._firsts.append(self._firsts[-1] + len(bounds) - 1)
        self._path: Path | None = None
        self._views: dict[int, _View] = {}
        self._documents = [0]
        for shard in shards.shards:
            self._documents.append(self._documents[-1] + len(shard.documents) - 1)

    @classmethod
    def build(
        cls,
        shards: ShardSet,
        *,
        max_tokens: int,
        short_fraction: float = 0.1,
        seed: int = 0,
    ) -> Self:
        """Cut every document of the shards.

        Args:
            shards: clean tokens with sentence and document bounds.
            max_tokens: most tokens of a chunk, at least 2; usually `max_length - 3`.
            short_fraction: part of the chunks, in [0, 1], whose target is drawn evenly from
                2..max_tokens, so that the model also meets short inputs.
            seed: of those draws.

        Raises:
            SettingsError: a number out of its range.

        Source: official `create_pretraining_data.py`, `create_instances_from_document`.
        """
        if max_tokens < 2 or not 0.0 <= short_fraction <= 1.0 or seed < 0:
            raise SettingsError(
                f"chunks: max_tokens is {max_tokens} (allowed: 2 and above), short_fraction "
                f"{short_fraction} (allowed: 0 to 1), seed {seed} (allowed: 0 and above)"
            )
        starts = [
            _cut_shard(shard, _targets(max_tokens, short_fraction, seed, number))
            for number, shard in enumerate(shards.shards)
        ]
        settings = {"max_tokens": max_tokens, "short_fraction": short_fraction, "seed": seed}
        return cls(shards, starts, settings)

    def save(self, path: str | Path) -> None:
        """Write the index to one file, at once.

        Raises:
            DataError: the file cannot be written.
        """
        header = {"shards": self.shards.fingerprint, "settings": self.settings}
        write_chunk_file(Path(path), header, self._starts)
        self._path = Path(path)

    @classmethod
    def load(cls, path: str | Path, shards: ShardSet) -> Self:
        """Map an index that was saved; reads a header and nothing else, whatever its size.

        Raises:
            DataError: not such a file, damaged, or made from other shards.
        """
        header, starts = read_chunk_file(Path(path), shards.fingerprint, len(shards.shards))
        index = cls(shards, starts, header["settings"])
        index._path = Path(path)
        return index

    @cached_property
    def fingerprint(self) -> str:
        """sha256 (hex) of what decides the chunks: the shards and how they are cut."""
        text = f"{self.shards.fingerprint} {sorted(self.settings.items())}"
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """[N] tokens of each chunk."""
        parts = [np.diff(bounds).astype(np.int32) for bounds in self._starts]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def __len__(self) -> int:
        return self._firsts[-1]

    def chunk(self, index: int) -> Chunk:
        """Return one chunk, copied out of the shard.

        Raises:
            IndexError: no such number; 0 to len - 1.
        """
        number, start, end = self._locate(index)
        view = self._view(number)
        low, high = view.sentence_range(start, end)
        ends = np.empty(high - low + 1, np.int64)
        ends[:-1] = view.sentences[low:high]
        ends[:-1] -= start
        ends[-1] = end - start
        flags = np.array(view.shard.word_starts(start, end), np.bool_)
        flags[0] = True
        return Chunk(
            ids=view.ids[start:end].astype(np.int32),
            word_starts=flags,
            sentence_ends=ends,
            document=self._documents[number] + view.document(low - 1),
            index=index,
        )

    def document(self, index: int) -> int:
        """Return the number of the document that a chunk is from.

        Raises:
            IndexError: no such number.
        """
        number, start, _ = self._locate(index)
        view = self._view(number)
        return self._documents[number] + view.document(view.sentence_range(start, start)[0] - 1)

    def _locate(self, index: int) -> tuple[int, int, int]:
        if not 0 <= index < len(self):
            raise IndexError(f"chunk {index} of {len(self)}")
        number = bisect_right(self._firsts, index) - 1
        bounds, place = self._starts[number], index - self._firsts[number]
        return number, int(bounds[place]), int(bounds[place + 1])

    def _view(self, number: int) -> _View:
        view = self._views.get(number)
        if view is None:
            view = self._views[number] = _View(self.shards.shards[number])
        return view

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is mapped: another process maps the file again."""
        state = {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("_views", "lengths", "fingerprint")
        }
        if self._path is not None:
            state["_starts"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._views = {}
        if self._path is not None:
            shards = self.shards
            self._starts = read_chunk_file(self._path, shards.fingerprint, len(shards.shards))[1]


class _View:
    """One shard as plain arrays over the mapped memory, which slice faster than `memmap`."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.ids = np.asarray(shard.ids)
        self.sentences = np.asarray(shard.sentences, np.uint32)
        self.documents = np.asarray(shard.documents, np.uint32)

    def sentence_range(self, start: int, end: int) -> tuple[int, int]:
        """Sentence offsets inside (start, end): first and last + 1 place in `sentences`."""
        # The keys have the array's own type: with any other, numpy would copy the whole array.
        low = int(self.sentences.searchsorted(np.uint32(start), "right"))
        high = int(self.sentences.searchsorted(np.uint32(end), "left"))
        return low, max(low, high)

    def document(self, sentence: int) -> int:
        return int(self.documents.searchsorted(np.uint32(sentence), "right")) - 1


def _targets(max_tokens: int, short_fraction: float, seed: int, shard: int) -> Iterator[int]:
    """Yield the target length of chunk after chunk of one shard, without end."""
    rng = np.random.Generator(np.random.Philox(key=[seed, _STREAM], counter=[0, 0, shard, 0]))
    while True:
        is_short = rng.random(_DRAWS) < short_fraction
        drawn = 2 + (rng.random(_DRAWS) * (max_tokens - 1)).astype(np.int64)
        yield from np.where(is_short, drawn, max_tokens).tolist()


def _cut_shard(shard: Shard, targets: Iterator[int]) -> UInt32:
    """Return the start of each chunk of a shard, then T."""
    offsets = np.ascontiguousarray(shard.sentences, np.uint32)
    sentences = offsets.data
    documents = np.asarray(shard.documents).tolist()
    starts = array("I")
    for first, last in pairwise(documents):
        sentence, position, end = first, sentences[first], sentences[last]
        while position < end:
            starts.append(position)
            target = next(targets)
            limit = position + target
            if limit >= end:
                break
            stop = min(last + 1, sentence + target + 2)
            sentence = bisect_right(sentences, limit, sentence, stop) - 1
            if sentences[sentence] > position:
                position = sentences[sentence]
                continue
            left = sentences[sentence + 1] - position  # of a sentence longer than the target
            parts = -(-left // target)
            position = _word_cut(shard, position, position - (-left // parts))
    starts.append(int(offsets[-1]))
    return np.frombuffer(starts, np.uint32)


def _word_cut(shard: Shard, position: int, limit: int) -> int:
    """Return the last place in (position, limit] where a word begins, else `limit`."""
    begins = np.flatnonzero(shard.word_starts(position + 1, limit + 1))
    return position + 1 + int(begins[-1]) if len(begins) else limit
