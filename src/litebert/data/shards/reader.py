"""Open a shard folder: check what it says against what is there, then memory-map on first use."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from litebert.data.shards.format import FileInfo, ShardInfo
from litebert.data.shards.manifest import TOKENIZER_FOLDER, Manifest, read_manifest
from litebert.errors import DataError

__all__ = ["Shard", "ShardSet", "Verify"]

Verify = Literal["sizes", "full"]
_CHUNK: Final = 1 << 20


class Shard:
    """One shard, memory-mapped when first used; pickles as its place, not as its content.

    Attributes:
        folder: the shard folder.
        info: counts and files.
    """

    def __init__(self, folder: Path, info: ShardInfo, dtype: str) -> None:
        self.folder, self.info, self._dtype = folder, info, dtype

    def __reduce__(self) -> tuple[type[Shard], tuple[Path, ShardInfo, str]]:
        return Shard, (self.folder, self.info, self._dtype)

    @property
    def name(self) -> str:
        """For example shard-00000."""
        return self.info.name

    @property
    def num_tokens(self) -> int:
        """Tokens T."""
        return self.info.num_tokens

    @property
    def num_sentences(self) -> int:
        """Sentences S."""
        return self.info.num_sentences

    @property
    def num_documents(self) -> int:
        """Documents D."""
        return self.info.num_documents

    @cached_property
    def ids(self) -> NDArray[Any]:
        """Token ids [T], uint16 or uint32, without special tokens."""
        return self._map("ids", np.dtype(self._dtype).newbyteorder("<"))

    @cached_property
    def sentences(self) -> NDArray[np.uint32]:
        """Token offsets [S+1] of sentence beginnings; the first is 0, the last T."""
        return self._map("sentences", np.dtype("<u4"))

    @cached_property
    def documents(self) -> NDArray[np.uint32]:
        """Sentence offsets [D+1] of document beginnings; the first is 0, the last S."""
        return self._map("documents", np.dtype("<u4"))

    @cached_property
    def _words(self) -> NDArray[np.uint8]:
        return self._map("words", np.dtype(np.uint8))

    def word_starts(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return which of the tokens [first, last) begin a word, bool [last - first].

        Args:
            first: first token, 0 to T.
            last: token after the last one, `first` to T.
        """
        packed = self._words[first >> 3 : (last + 7) >> 3]
        bits = np.unpackbits(packed, bitorder="little")
        return bits[first & 7 : (first & 7) + last - first].view(np.bool_)

    def verify(self, vocab_size: int) -> None:
        """Compare the sha256 of every file, then check that offsets rise and ids fit.

        Raises:
            DataError: the file that is not as the manifest says.
        """
        for file in self.info.files.values():
            path = self.folder / file.name
            found = _sha256(path)
            if found != file.sha256:
                raise DataError(
                    f"the content is not what was written (sha256 {found[:12]}…, the manifest says "
                    f"{file.sha256[:12]}…): damaged or swapped; copy it again or prepare anew",
                    path=path,
                )
        for part, offsets in (("sentences", self.sentences), ("documents", self.documents)):
            if not bool((offsets[1:] > offsets[:-1]).all()):
                self._refuse(part, "the offsets do not rise")
        largest = max(
            int(self.ids[at : at + _CHUNK].max()) for at in range(0, self.num_tokens, _CHUNK)
        )
        if largest >= vocab_size:
            self._refuse("ids", f"id {largest} is outside of the {vocab_size} of the vocabulary")

    def check_sizes(self) -> None:
        """Compare the size of each file, and the ends of the offsets.

        Raises:
            DataError: the file that is missing, truncated, or of another shard.
        """
        for file in self.info.files.values():
            _check_file(self.folder / file.name, file)
        ends = (
            ("sentences", self.sentences, self.num_tokens),
            ("documents", self.documents, self.num_sentences),
        )
        for part, offsets, total in ends:
            if int(offsets[0]) != 0 or int(offsets[-1]) != total:
                self._refuse(
                    part,
                    f"the offsets lead from {offsets[0]} to {offsets[-1]}, not from 0 to {total}",
                )

    def _refuse(self, part: str, what: str) -> None:
        raise DataError(
            f"{what}: damaged or swapped with another shard; copy it again or prepare anew",
            path=self.folder / self.info.files[part].name,
        )

    def _map(self, part: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        file = self.info.files[part]
        path = self.folder / file.name
        _check_file(path, file)
        return np.memmap(path, dtype=dtype, mode="r", shape=(file.size // dtype.itemsize,))


class ShardSet:
    """All shards of a folder.

    Attributes:
        folder: the folder that `litebert prepare` wrote.
        manifest: what it says about itself.
        shards: the shards in order.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        """Use `open`, which checks first."""
        self.folder, self.manifest = folder, manifest
        self.shards = tuple(Shard(folder, info, manifest.dtype) for info in manifest.shards)

    def __reduce__(self) -> tuple[type[ShardSet], tuple[Path, Manifest]]:
        return ShardSet, (self.folder, self.manifest)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        verify: Verify = "sizes",
        on_progress: Callable[[int, int], None] | None = None,
    ) -> ShardSet:
        """Open a shard folder.

        Args:
            folder: what `litebert prepare` wrote.
            verify: "sizes" checks manifest, sizes and tokenizer files, in milliseconds; "full"
                reads everything and compares every sha256.
            on_progress: called with (shards checked, shards) during a full check.

        Raises:
            DataError: no shard folder, or the file in it that is not as it was written.
        """
        folder = Path(folder)
        shard_set = cls(folder, read_manifest(folder))
        for shard in shard_set.shards:
            shard.check_sizes()
        shard_set._check_tokenizer()
        if verify == "full":
            for number, shard in enumerate(shard_set.shards, start=1):
                shard.verify(shard_set.vocab_size)
                if on_progress is not None:
                    on_progress(number, len(shard_set.shards))
        return shard_set

    @property
    def fingerprint(self) -> str:
        """sha256 (hex) over the content hashes of all shards and the tokenizer fingerprint."""
        return self.manifest.fingerprint

    @property
    def tokenizer_fingerprint(self) -> str:
        """sha256 (hex) of everything that decides the ids of a text."""
        return self.manifest.tokenizer_fingerprint

    @property
    def tokenizer_folder(self) -> Path:
        """The copy of the tokenizer files that made the ids."""
        return self.folder / TOKENIZER_FOLDER

    @property
    def vocab_size(self) -> int:
        """Entries of the vocabulary; ids lie below."""
        return self.manifest.vocab_size

    @property
    def num_tokens(self) -> int:
        """Tokens of all shards."""
        return sum(shard.num_tokens for shard in self.shards)

    @property
    def num_sentences(self) -> int:
        """Sentences of all shards."""
        return sum(shard.num_sentences for shard in self.shards)

    @property
    def num_documents(self) -> int:
        """Documents of all shards."""
        return sum(shard.num_documents for shard in self.shards)

    def check_tokenizer(self, fingerprint: str, name: str | Path) -> None:
        """Refuse another tokenizer than the one that made the ids.

        Args:
            fingerprint: of the tokenizer that is about to be used.
            name: what to call it in the message.

        Raises:
            DataError: it is another one.
        """
        if fingerprint != self.tokenizer_fingerprint:
            raise DataError(
                f"the shards were made with another tokenizer ({self.tokenizer_fingerprint[:12]}…) "
                f"than {name} ({fingerprint[:12]}…); use {self.tokenizer_folder} or prepare the "
                "corpus anew",
                path=self.folder,
            )

    def _check_tokenizer(self) -> None:
        for file in self.manifest.tokenizer_files:
            path = self.tokenizer_folder / file.name
            _check_file(path, file)
            if _sha256(path) != file.sha256:
                raise DataError(
                    "the tokenizer file is not the one that made these shards; restore it, or "
                    "prepare the corpus anew with the tokenizer that you want",
                    path=path,
                )


def _check_file(path: Path, file: FileInfo) -> None:
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise DataError(
            "the file is missing; copy it again or prepare the corpus anew", path=path
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}; check the file", path=path) from error
    if not stat.S_ISREG(status.st_mode):
        raise DataError("is no regular file; copy it again or prepare anew", path=path)
    if status.st_size != file.size:
        raise DataError(
            f"has {status.st_size:,} bytes, the manifest says {file.size:,}: cut off or swapped; "
            "copy it again or prepare the corpus anew",
            path=path,
        )


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}; check the file", path=path) from error
