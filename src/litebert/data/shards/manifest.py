"""`manifest.json`: what a shard folder holds, and by which tokenizer; written last, read first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from litebert.data.shards.durable import write_atomic
from litebert.data.shards.format import FORMAT, FORMAT_VERSION, FileInfo, ShardInfo, dtype_for
from litebert.errors import DataError
from litebert.small_files import read_small
from litebert.text.tokenizer import Tokenizer

__all__ = ["MANIFEST_FILE", "TOKENIZER_FOLDER", "Manifest", "read_manifest", "write_manifest"]

MANIFEST_FILE: Final = "manifest.json"
TOKENIZER_FOLDER: Final = "tokenizer"
MAX_MANIFEST_BYTES: Final = 64 << 20
"""About 80,000 shards."""
_MAX_VOCABULARY: Final = 1 << 31
_MAX_TOKENIZER_FILES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of a manifest.

    Attributes:
        vocab_size: entries of the vocabulary; ids lie below.
        tokenizer_fingerprint: sha256 (hex) of everything that decides the ids of a text.
        tokenizer_files: the files in `tokenizer/`.
        shards: the shards in order.
        options: how the corpus was prepared; for people, not looked at again.
    """

    vocab_size: int
    tokenizer_fingerprint: str
    tokenizer_files: tuple[FileInfo, ...]
    shards: tuple[ShardInfo, ...]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def dtype(self) -> str:
        """Number format of the ids."""
        return dtype_for(self.vocab_size)

    @property
    def fingerprint(self) -> str:
        """sha256 (hex) over the content hashes of all shards and the tokenizer fingerprint."""
        digest = hashlib.sha256(f"{FORMAT} {self.dtype} {self.tokenizer_fingerprint}\n".encode())
        for shard in self.shards:
            for part, file in sorted(shard.files.items()):
                digest.update(f"{part} {file.sha256}\n".encode())
        return digest.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "dtype": self.dtype,
            "vocab_size": self.vocab_size,
            "tokenizer_fingerprint": self.tokenizer_fingerprint,
            "tokenizer_files": [
                {"name": file.name, "size": file.size, "sha256": file.sha256}
                for file in self.tokenizer_files
            ],
            "fingerprint": self.fingerprint,
            "num_tokens": sum(shard.num_tokens for shard in self.shards),
            "num_sentences": sum(shard.num_sentences for shard in self.shards),
            "num_documents": sum(shard.num_documents for shard in self.shards),
            "options": dict(self.options),
            "shards": [shard.to_json() for shard in self.shards],
        }


def write_manifest(
    folder: Path,
    shards: Sequence[ShardInfo],
    tokenizer: Tokenizer,
    options: Mapping[str, Any] | None = None,
) -> Manifest:
    """Copy the tokenizer into a folder of finished shards, then write its manifest, atomically.

    The folder is a shard set from then on.

    Args:
        folder: where the shards lie.
        shards: what each `ShardWriter.finish` returned, in order, at least one.
        tokenizer: what made the ids.
        options: how the corpus was prepared, JSON values.

    Raises:
        OSError: the disk refused the manifest.
        CheckpointError: the disk refused the tokenizer.
    """
    files = tokenizer.files()
    tokenizer.save_pretrained(folder / TOKENIZER_FOLDER)
    manifest = Manifest(
        vocab_size=tokenizer.vocab_size,
        tokenizer_fingerprint=tokenizer.fingerprint,
        tokenizer_files=tuple(
            FileInfo(name, len(data), hashlib.sha256(data).hexdigest())
            for name, data in sorted(files.items())
        ),
        shards=tuple(shards),
        options=dict(options or {}),
    )
    text = json.dumps(manifest.to_json(), ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    write_atomic(folder / MANIFEST_FILE, text.encode())
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a shard folder.

    Raises:
        DataError: missing, damaged, of a newer version, or contradicting itself.
    """
    path = folder / MANIFEST_FILE
    try:
        data = read_small(path, MAX_MANIFEST_BYTES)
    except FileNotFoundError as error:
        raise DataError(
            "no manifest.json here, so this is no finished shard folder; "
            "make one with `litebert prepare`, or give the same command again to finish it",
            path=folder,
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}; check the file", path=path) from error
    try:
        values = json.loads(data)
        return _parse(values, path)
    except (ValueError, RecursionError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"the manifest is damaged ({error}); copy the folder again or prepare it anew",
            path=path,
        ) from error


def _parse(values: Any, path: Path) -> Manifest:
    if not isinstance(values, dict):
        raise ValueError(f"expected a JSON object, got a {type(values).__name__}")
    entry = cast(dict[str, Any], values)
    if entry.get("format") != FORMAT:
        raise ValueError(f"its format is {entry.get('format')!r:.60}, expected {FORMAT!r}")
    version = entry.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise DataError(
            f"the shards have format version {version}, this litebert reads up to "
            f"{FORMAT_VERSION}; install a newer litebert or prepare the corpus anew",
            path=path,
        )
    if version != FORMAT_VERSION:
        raise ValueError(f"its format version is {version!r:.40}")
    vocab_size = entry.get("vocab_size")
    if not isinstance(vocab_size, int) or not 0 < vocab_size <= _MAX_VOCABULARY:
        raise ValueError(f"vocab_size is {vocab_size!r:.40}")
    dtype = dtype_for(vocab_size)
    if entry.get("dtype") != dtype:
        raise ValueError(f"dtype is {entry.get('dtype')!r:.40}, expected {dtype} by the vocabulary")
    shards = tuple(
        ShardInfo.from_json(item, index, dtype)
        for index, item in enumerate(cast(list[Any], entry.get("shards") or []))
    )
    if not shards:
        raise ValueError("it lists no shard")
    manifest = Manifest(
        vocab_size=vocab_size,
        tokenizer_fingerprint=str(entry.get("tokenizer_fingerprint")),
        tokenizer_files=tuple(map(_tokenizer_file, cast(list[Any], entry["tokenizer_files"]))),
        shards=shards,
        options=dict(cast(dict[str, Any], entry.get("options") or {})),
    )
    if len(manifest.tokenizer_files) > _MAX_TOKENIZER_FILES:
        raise ValueError(f"it lists {len(manifest.tokenizer_files)} tokenizer files")
    computed = manifest.to_json()
    for key in ("fingerprint", "num_tokens", "num_sentences", "num_documents"):
        if entry.get(key) != computed[key]:
            raise ValueError(f"{key} is {entry.get(key)!r:.80}, the shards give {computed[key]}")
    return manifest


def _tokenizer_file(values: Any) -> FileInfo:
    entry = cast(dict[str, Any], values)
    name, size, digest = entry["name"], entry["size"], entry["sha256"]
    if (
        not isinstance(name, str)
        or not isinstance(size, int)
        or not isinstance(digest, str)
        or Path(name).name != name
        or name in ("", ".", "..")
    ):
        raise ValueError(f"a tokenizer file is described as {values!r:.80}")
    return FileInfo(name, size, digest)
