"""Read a small file whole, whoever put it there: it must be a regular file and within its bound.

A pipe would never end to be waited for and a device never end to be read, so neither is opened.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["read_small"]


def read_small(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file; links are followed.

    Args:
        path: the file.
        max_bytes: largest content in bytes that is read.

    Raises:
        OSError: missing or unreadable; also a folder, pipe or device (EINVAL) and a file over
            `max_bytes` (EFBIG), each with a `strerror` that says so.
    """
    _require_regular(path, path.stat().st_mode)
    # Should a pipe have taken the file's place since the check, opening it still returns.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        _require_regular(path, os.fstat(file.fileno()).st_mode)
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(
            errno.EFBIG,
            f"larger than {max_bytes:,} bytes, which is the most that is read",
            str(path),
        )
    return data


def _require_regular(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    found = kinds.get(stat.S_IFMT(mode), "a device")
    raise OSError(errno.EINVAL, f"is {found}, expected a regular file", str(path))
