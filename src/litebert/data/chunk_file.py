"""The file of a chunk index: a line of JSON, then the offsets, mapped and never read as a whole."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from litebert.errors import DataError

__all__ = ["read_chunk_file", "write_chunk_file"]

FORMAT: Final = "litebert chunks 1"
_MAX_HEADER_BYTES: Final = 1 << 24
_ALIGNMENT: Final = 64

UInt32 = NDArray[np.uint32]


def write_chunk_file(path: Path, header: Mapping[str, Any], parts: Sequence[UInt32]) -> None:
    """Write a header and some arrays: beside the target first, then in its place at once.

    Raises:
        DataError: the disk refused.
    """
    table = {"format": FORMAT, "counts": [len(part) for part in parts], **header}
    line = json.dumps(table, sort_keys=True).encode()
    line += b" " * (-(len(line) + 1) % _ALIGNMENT) + b"\n"
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(line)
            for part in parts:
                file.write(np.ascontiguousarray(part, "<u4").data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise DataError(
            f"the chunk index cannot be written ({error.strerror}); choose another place for it",
            path=path,
        ) from error


def read_chunk_file(
    path: Path, fingerprint: str, num_shards: int
) -> tuple[dict[str, Any], tuple[UInt32, ...]]:
    """Return the header and the mapped arrays.

    Args:
        path: a file of `write_chunk_file`.
        fingerprint: of the shards that it must have been made from.
        num_shards: how many those are.

    Raises:
        DataError: missing, another format, cut short, or made from other shards.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(_MAX_HEADER_BYTES)
        size = path.stat().st_size
    except OSError as error:
        raise DataError(
            f"the chunk index cannot be read ({error.strerror}); build it again", path=path
        ) from error
    header = _header(line, path)
    counts = header["counts"]
    if header["shards"] != fingerprint or len(counts) != num_shards:
        raise DataError(
            "the chunk index was made from other shards than these; delete it, and it is built "
            "again",
            path=path,
        )
    expected = len(line) + 4 * sum(counts)
    if size != expected:
        raise DataError(
            f"the chunk index has {size:,} bytes, expected {expected:,}; delete it, and it is "
            "built again",
            path=path,
        )
    data = np.memmap(path, "<u4", "r", offset=len(line))
    bounds = np.cumsum([0, *counts])
    plain = np.asarray(data)
    return header, tuple(plain[a:b] for a, b in pairwise(bounds.tolist()))


def _header(line: bytes, path: Path) -> dict[str, Any]:
    header: Any = None
    try:
        header = json.loads(line)
        is_right = header["format"] == FORMAT and isinstance(header["shards"], str)
        counts, settings = header["counts"], header["settings"]
        is_right = is_right and all(type(count) is int and count > 0 for count in counts)
        is_right = is_right and isinstance(settings, dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        is_right = False
    if not is_right:
        raise DataError(
            f"this is no chunk index of the format {FORMAT!r}; delete it, and it is built again",
            path=path,
        )
    return header
