"""The files of one shard: their names, their number formats, and the sizes that follow from counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "MAX_SHARD_TOKENS",
    "PARTS",
    "FileInfo",
    "ShardInfo",
    "dtype_for",
    "expected_sizes",
    "file_name",
    "shard_name",
]

FORMAT: Final = "litebert-shards"
FORMAT_VERSION: Final = 1
MAX_SHARD_TOKENS: Final = (1 << 32) - 1
"""Offsets are 32-bit numbers."""

PARTS: Final = ("ids", "words", "sentences", "documents")
"""ids: tokens. words: 1 bit a token. sentences: token offsets. documents: sentence offsets."""

_ITEM_BYTES: Final = {"uint16": 2, "uint32": 4}
_OFFSET_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file of a shard: plain name, size in bytes, sha256 (hex) of its content."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What the manifest says about one shard.

    Attributes:
        name: common beginning of its file names, for example shard-00000.
        num_tokens: tokens, at least 1.
        num_sentences: sentences, at least 1, none empty.
        num_documents: documents, at least 1, none empty.
        files: part (ids, words, sentences, documents) -> file.
    """

    name: str
    num_tokens: int
    num_sentences: int
    num_documents: int
    files: dict[str, FileInfo]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "name": self.name,
            "num_tokens": self.num_tokens,
            "num_sentences": self.num_sentences,
            "num_documents": self.num_documents,
            "files": {
                part: {"name": file.name, "size": file.size, "sha256": file.sha256}
                for part, file in self.files.items()
            },
        }

    @classmethod
    def from_json(cls, values: Any, index: int, dtype: str) -> ShardInfo:
        """Read the entry of shard number `index`, believing nothing in it.

        Raises:
            ValueError: a key is missing, a name is foreign, or counts and sizes contradict.
        """
        entry = _object(values)
        if entry.get("name") != shard_name(index):
            raise ValueError(f"entry {index} is named {entry.get('name')!r:.60}")
        counts = {
            key: _count(entry.get(key), key)
            for key in ("num_tokens", "num_sentences", "num_documents")
        }
        if not counts["num_documents"] <= counts["num_sentences"] <= counts["num_tokens"]:
            raise ValueError(f"the counts of {shard_name(index)} contradict each other")
        sizes = expected_sizes(*counts.values(), dtype=dtype)
        listed = _object(entry.get("files"))
        files: dict[str, FileInfo] = {}
        for part in PARTS:
            file = _object(listed.get(part))
            digest = file.get("sha256")
            if file.get("name") != file_name(index, part) or not _is_digest(digest):
                raise ValueError(f"the {part} file of {shard_name(index)} is not described")
            if file.get("size") != sizes[part]:
                raise ValueError(
                    f"{file_name(index, part)} should have {sizes[part]} bytes by its counts, the "
                    f"manifest says {file.get('size')!r:.40}"
                )
            files[part] = FileInfo(file_name(index, part), sizes[part], cast(str, digest))
        return cls(name=shard_name(index), files=files, **counts)


def dtype_for(vocab_size: int) -> str:
    """Return the number format of token ids: uint16 up to 65,536 entries, else uint32."""
    return "uint16" if vocab_size <= 1 << 16 else "uint32"


def shard_name(index: int) -> str:
    """Return the name of shard number `index`, counted from 0."""
    return f"shard-{index:05d}"


def file_name(index: int, part: str) -> str:
    """Return the file name of one part of a shard."""
    return f"{shard_name(index)}.{part}.bin"


def expected_sizes(
    num_tokens: int, num_sentences: int, num_documents: int, *, dtype: str
) -> dict[str, int]:
    """Return part -> size in bytes of a shard with these counts."""
    return {
        "ids": num_tokens * _ITEM_BYTES[dtype],
        "words": (num_tokens + 7) // 8,
        "sentences": (num_sentences + 1) * _OFFSET_BYTES,
        "documents": (num_documents + 1) * _OFFSET_BYTES,
    }


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {value!r:.60}")
    return cast(dict[str, Any], value)


def _count(value: Any, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MAX_SHARD_TOKENS:
        raise ValueError(f"{key} is {value!r:.40}, expected 1 to {MAX_SHARD_TOKENS}")
    return value


def _is_digest(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) == 64
        and not set(value).difference("0123456789abcdef")
    )
