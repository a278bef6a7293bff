"""Reading single files of a model folder that may be hostile: regular, inside it, bounded.

A pipe, a device, a folder in a file's place or a link that leads out of the folder is refused
before it is opened for reading, so that nothing hangs and nothing outside is read.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, cast

from litebert.errors import CheckpointError

__all__ = ["check_file", "open_file", "read_bytes", "read_json"]


def check_file(path: Path, *, max_bytes: int | None = None) -> int | None:
    """Return the size of a file in bytes, or None where there is none.

    Raises:
        CheckpointError: not a regular file, a link out of its folder, or over `max_bytes`.
    """
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            _check_link(path)
            status = path.stat()
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError, ValueError) as error:
        raise CheckpointError(f"cannot be read: {error}", path=path) from error
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointError(f"is a {_kind(status.st_mode)}, expected a regular file", path=path)
    if max_bytes is not None and status.st_size > max_bytes:
        raise CheckpointError(f"has {status.st_size:,} bytes, allowed are {max_bytes:,}", path=path)
    return status.st_size


def open_file(path: Path, *, max_bytes: int | None = None) -> BinaryIO:
    """Open a regular file for reading; the caller closes it.

    Raises:
        CheckpointError: missing, not a regular file, too large, or not permitted.
    """
    if check_file(path, max_bytes=max_bytes) is None:
        raise CheckpointError("missing from the model folder", path=path)
    try:
        # Should a pipe have taken the file's place since the check, opening it still returns.
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        return os.fdopen(descriptor, "rb", buffering=0)
    except OSError as error:
        raise CheckpointError(f"cannot be opened: {error.strerror}", path=path) from error


def read_bytes(path: Path, *, max_bytes: int) -> bytes:
    """Return the content of a small file.

    Raises:
        CheckpointError: missing, not a regular file, over `max_bytes`, or unreadable.
    """
    with open_file(path, max_bytes=max_bytes) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            data = file.read(max_bytes + 1)  # a pipe that slipped in gives b"" or None at once
        except OSError as error:
            raise CheckpointError(f"cannot be read: {error.strerror}", path=path) from error
    if not data and not size:
        raise CheckpointError("is empty", path=path)
    if data is None or size != len(data):  # pyright: ignore[reportUnnecessaryComparison]
        raise CheckpointError("changed while it was read; try again", path=path)
    return data


def read_json(path: Path, *, max_bytes: int) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        CheckpointError: as `read_bytes`, or not JSON, nested too deep, or not an object.
    """
    try:
        values = json.loads(read_bytes(path, max_bytes=max_bytes))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"not valid JSON: {error}", path=path) from error
    if not isinstance(values, dict):
        raise CheckpointError(
            f"holds a JSON {type(values).__name__}, expected an object", path=path
        )
    return cast(dict[str, Any], values)


def _check_link(path: Path) -> None:
    """Allow links inside the folder, and into `blobs` of a download cache, which is made of links."""
    folder = path.parent.resolve()
    homes = [folder]
    if folder.parent.name == "snapshots":
        homes.append(folder.parent.parent / "blobs")
    target = path.resolve()
    if not any(target.is_relative_to(home) for home in homes):
        raise CheckpointError(
            f"is a link to {target}, outside of the model folder; copy the file itself", path=path
        )


def _kind(mode: int) -> str:
    names = {
        stat.S_IFDIR: "folder",
        stat.S_IFIFO: "pipe",
        stat.S_IFSOCK: "socket",
        stat.S_IFCHR: "device",
        stat.S_IFBLK: "device",
    }
    return names.get(stat.S_IFMT(mode), "special file")
