"""`metrics.jsonl`: one JSON object a line, appended and flushed; and the process's memory."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from litebert.checkpoint.fs import StorageError, active_fs, make_folder

log = logging.getLogger(__name__)


class MetricsLog:
    """The log of one run; without a path it writes nothing.

    A line holds `kind`, `step` and numbers. What depends on the clock or the machine is under
    `timing`, so that two equal runs differ nowhere else.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.also: Callable[[dict[str, Any]], None] = _nowhere
        """Is handed each line besides."""
        self._descriptor: int | None = None
        self._has_failed = False
        self.offset = 0
        """Bytes of complete lines."""

    def open(self, offset: int | None = None) -> None:
        """Open the file to append.

        Args:
            offset: keep only this many bytes, those of before a resumed state; None: keep all.

        Raises:
            StorageError: the file cannot be opened.
        """
        if self._path is None:
            return
        make_folder(self._path.parent)
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            size = os.fstat(self._descriptor).st_size
            self.offset = size if offset is None else min(size, offset)
            os.ftruncate(self._descriptor, self.offset)
        except OSError as error:
            raise StorageError(
                f"cannot write the metrics ({error.strerror})",
                path=self._path,
                errno=error.errno or 0,
            ) from error

    def write(self, kind: str, step: int, values: dict[str, Any], timing: dict[str, Any]) -> None:
        """Append one line. A disk that refuses costs the line and one warning, not the run."""
        if self._descriptor is None or self._path is None:
            return
        line = {"kind": kind, "step": step, **values, "timing": timing}
        self.also(line)
        text = memoryview(json.dumps(_finite(line), allow_nan=False).encode() + b"\n")
        try:
            os.lseek(self._descriptor, self.offset, os.SEEK_SET)
            rest = text
            while rest:
                rest = rest[active_fs().write_some(self._descriptor, rest, self._path) :]
            self.offset += len(text)
            self._has_failed = False
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.offset)
            if not self._has_failed:
                log.warning("cannot write %s (%s); training goes on", self._path, error.strerror)
            self._has_failed = True

    def sync(self) -> None:
        """Force the lines to disk, before a state refers to them."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _nowhere(line: dict[str, Any]) -> None:
    """Do nothing with a line."""


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become their names."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def resident_bytes() -> int:
    """Return the resident memory of this process, or its peak where only that is told, in bytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
