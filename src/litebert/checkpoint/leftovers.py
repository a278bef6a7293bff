"""Half-written files of processes that were killed: found by the number in their name, and removed."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Final

from litebert.checkpoint import fs

__all__ = ["QUIET_SECONDS", "is_running", "remove_leftovers"]

QUIET_SECONDS: Final = 60.0
"""A file that was written to more recently may belong to a process of another machine."""


def remove_leftovers(path: Path) -> None:
    """Remove the hidden `.NAME.KIND-PID` beside `path` whose process is gone.

    What cannot be removed stays: nothing depends on it.
    """
    start = f".{path.name}."
    with contextlib.suppress(OSError, fs.StorageError):
        for other in path.parent.iterdir():
            kind, _, number = other.name.removeprefix(start).rpartition("-")
            is_one = other.name.startswith(start) and kind in ("rows", "parquet", "tmp")
            if is_one and number.isdecimal() and not is_running(int(number)) and _is_quiet(other):
                fs.remove_tree(other)


def is_running(process: int) -> bool:
    """Return whether a process of this number is there; True where that cannot be told."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # another user's process, or no number of one
    return True


def _is_quiet(path: Path) -> bool:
    return time.time() - path.lstat().st_mtime > QUIET_SECONDS
