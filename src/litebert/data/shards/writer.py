"""Write one shard as a stream: memory does not grow with it, and nothing half-written keeps its name."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from litebert.data.shards.durable import fsync_folder
from litebert.data.shards.format import (
    MAX_SHARD_TOKENS,
    PARTS,
    FileInfo,
    ShardInfo,
    file_name,
    shard_name,
)
from litebert.errors import DataError

__all__ = ["ShardWriter"]

Ints = NDArray[Any]
Bools = NDArray[np.bool_]


class ShardWriter:
    """Writes the four files of one shard; `finish` gives them their names, `discard` removes them.

    In a `with` block, leaving without `finish` discards.
    """

    def __init__(self, folder: Path, index: int, dtype: str) -> None:
        """Open the files under temporary names.

        Args:
            folder: where they go; must exist.
            index: number of the shard, from 0.
            dtype: "uint16" or "uint32", see `dtype_for`.

        Raises:
            OSError: the folder cannot be written.
        """
        self._folder, self._index = folder, index
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self.num_tokens = self.num_sentences = self.num_documents = 0
        self._pending_bits: Bools = np.zeros(0, np.bool_)
        self._parts: dict[str, _Part] = {}
        try:
            for part in PARTS:
                self._parts[part] = _Part(folder / f".{file_name(index, part)}.tmp")
            self._write_offsets("sentences", np.zeros(1, np.uint32))
            self._write_offsets("documents", np.zeros(1, np.uint32))
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()

    def add_document(self, sentences: Sequence[tuple[Ints, Bools]]) -> None:
        """Append a document.

        Args:
            sentences: (ids [n], word starts [n]) of each sentence; empty ones are left out, and
                a document of only empty ones too.

        Raises:
            DataError: ids and starts of unequal length, an id that does not fit, a full shard.
            OSError: the disk refused.
        """
        kept = [(ids, starts) for ids, starts in sentences if len(ids) or len(starts)]
        if not kept:
            return
        for ids, starts in kept:
            if len(ids) != len(starts):
                raise DataError(
                    f"a sentence has {len(ids)} ids but {len(starts)} word starts; "
                    "there must be one for each token"
                )
        lengths = np.asarray([len(ids) for ids, _ in kept], np.int64)
        ids = np.concatenate([ids for ids, _ in kept])
        starts = np.concatenate([starts for _, starts in kept])
        self.add_documents(ids, starts, lengths, np.asarray([len(kept)], np.int64))

    def add_documents(
        self, ids: Ints, starts: Bools, sentence_lengths: Ints, document_lengths: Ints
    ) -> None:
        """Append whole documents at once.

        Args:
            ids: token ids [T].
            starts: word starts [T].
            sentence_lengths: tokens of each sentence [S], all above 0, summing to T.
            document_lengths: sentences of each document [D], all above 0, summing to S.

        Raises:
            DataError: lengths that do not add up, an id that does not fit, a full shard.
            OSError: the disk refused.
        """
        if (
            len(ids) != len(starts)
            or int(sentence_lengths.sum()) != len(ids)
            or int(document_lengths.sum()) != len(sentence_lengths)
            or (len(sentence_lengths) and int(sentence_lengths.min()) < 1)
            or (len(document_lengths) and int(document_lengths.min()) < 1)
        ):
            raise DataError(
                f"{len(ids)} ids, {len(starts)} word starts, {len(sentence_lengths)} sentences and "
                f"{len(document_lengths)} documents do not add up; each part must fill the next"
            )
        if self.num_tokens + len(ids) > MAX_SHARD_TOKENS:
            raise DataError(
                f"the shard would have {self.num_tokens + len(ids):,} tokens, allowed are "
                f"{MAX_SHARD_TOKENS:,}; begin a new shard"
            )
        if not len(ids):
            return
        if int(ids.min()) < 0 or int(ids.max()) > np.iinfo(self._dtype).max:
            raise DataError(
                f"ids lie in {int(ids.min())}..{int(ids.max())}, {self._dtype.name} holds 0.."
                f"{np.iinfo(self._dtype).max}; choose the number format by the vocabulary"
            )
        self._parts["ids"].write(ids.astype(self._dtype, copy=False).tobytes())
        self._write_bits(starts)
        self._write_offsets("sentences", np.cumsum(sentence_lengths) + self.num_tokens)
        self._write_offsets("documents", np.cumsum(document_lengths) + self.num_sentences)
        self.num_tokens += len(ids)
        self.num_sentences += len(sentence_lengths)
        self.num_documents += len(document_lengths)

    def finish(self) -> ShardInfo:
        """Force the files to disk, give them their names, and return what the manifest needs.

        Raises:
            DataError: the shard is empty.
            OSError: the disk refused.
        """
        if not self.num_tokens:
            raise DataError("the shard holds no token; add a document before finishing it")
        self._parts["words"].write(np.packbits(self._pending_bits, bitorder="little").tobytes())
        files: dict[str, FileInfo] = {}
        for open_part in self._parts.values():
            open_part.close()
        for part, open_part in self._parts.items():
            name = file_name(self._index, part)
            open_part.path.replace(self._folder / name)
            files[part] = FileInfo(name, open_part.size, open_part.digest)
        fsync_folder(self._folder)
        self._parts = {}
        return ShardInfo(
            name=shard_name(self._index),
            num_tokens=self.num_tokens,
            num_sentences=self.num_sentences,
            num_documents=self.num_documents,
            files=files,
        )

    def discard(self) -> None:
        """Remove what was written; after `finish` this does nothing."""
        for part in self._parts.values():
            part.remove()
        self._parts = {}

    def _write_bits(self, starts: Bools) -> None:
        bits = np.concatenate([self._pending_bits, np.asarray(starts, np.bool_)])
        whole = len(bits) & ~7
        self._parts["words"].write(np.packbits(bits[:whole], bitorder="little").tobytes())
        self._pending_bits = bits[whole:]

    def _write_offsets(self, part: str, offsets: Ints) -> None:
        self._parts[part].write(offsets.astype("<u4").tobytes())


class _Part:
    """One file being written, with its running size and sha256."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._sha256 = hashlib.sha256()
        self._file: IO[bytes] = path.open("wb")

    @property
    def digest(self) -> str:
        return self._sha256.hexdigest()

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._sha256.update(data)
        self.size += len(data)

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def remove(self) -> None:
        with contextlib.suppress(OSError):  # a full disk may refuse what is still buffered
            self._file.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
