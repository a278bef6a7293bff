"""Files of the data layer that survive a crash: written beside their place, forced to disk, renamed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["fsync_folder", "write_atomic"]


def write_atomic(path: Path, data: bytes) -> None:
    """Write a small file so that a reader sees the old or the new content, never a part.

    Raises:
        OSError: the disk refused; an old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    fsync_folder(path.parent)


def fsync_folder(folder: Path) -> None:
    """Force the entries of a folder to disk, so that renames outlive a power cut.

    Raises:
        OSError: the disk refused.
    """
    if os.name == "nt":  # Windows has no such call; NTFS journals its entries
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
