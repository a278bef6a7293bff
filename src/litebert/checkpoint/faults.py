"""File systems that break on purpose, to prove that the writers above them survive."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import Literal

from litebert.checkpoint.fs import FS

Fault = Literal["error", "short_write", "kill"]


class FaultyFS(FS):
    """A file system whose n-th operation fails.

    Attributes:
        operations: (operation, path) of everything that was asked for, in order; with
            `fail_at=None` nothing fails and this is a recording.
    """

    def __init__(
        self,
        fail_at: int | None = None,
        *,
        fault: Fault = "error",
        number: int = errno.ENOSPC,
        times: int = 1,
        only: str | None = None,
        free_bytes: int | None = None,
    ) -> None:
        """Plan the fault.

        Args:
            fail_at: 1-based operation that fails; None for none.
            fault: "error" raises `OSError(number)` before the operation; "short_write" first
                writes half of the bytes, then raises (anything but a write just raises); "kill"
                ends the process by SIGKILL, after half of the bytes where it is a write.
            number: `errno` of the error.
            times: how many operations in a row fail from `fail_at` on.
            only: count just the operations of this name, for example "write".
            free_bytes: pretended free space of the disk; None for the real one.
        """
        self.operations: list[tuple[str, Path]] = []
        self._fail_at = fail_at
        self._fault: Fault = fault
        self._number = number
        self._times = times
        self._only = only
        self._free_bytes = free_bytes
        self._count = 0

    def before(self, operation: str, path: Path) -> None:
        """Count the operation and let it fail when its turn has come."""
        if self._is_due(operation, path):
            self._strike(path)

    def write_some(self, descriptor: int, data: memoryview, path: Path) -> int:
        """Write, or write half and fail, when its turn has come."""
        if self._is_due("write", path):
            if self._fault != "error":
                os.write(descriptor, data[: len(data) // 2])
            self._strike(path)
        return os.write(descriptor, data)

    def free_bytes(self, folder: Path) -> int:
        """Return the pretended or real free space, in bytes."""
        return super().free_bytes(folder) if self._free_bytes is None else self._free_bytes

    def _is_due(self, operation: str, path: Path) -> bool:
        self.operations.append((operation, path))
        if self._only is None or operation == self._only:
            self._count += 1
            first = self._fail_at
            return first is not None and first <= self._count < first + self._times
        return False

    def _strike(self, path: Path) -> None:
        if self._fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(self._number, os.strerror(self._number), str(path))


class PowerCut(BaseException):
    """The machine lost its power; nothing after this reaches the disk."""


class PowerCutFS(FaultyFS):
    """Loses, at its n-th operation, everything that was not forced to disk before.

    Content that was written but not fsynced becomes empty. With `lose_renames`, renames whose
    folder was not fsynced are undone as well; without, they are kept (a disk may do either).
    """

    def __init__(self, cut_at: int | None, *, lose_renames: bool) -> None:
        """Plan the cut before the 1-based operation `cut_at`; None for never."""
        super().__init__(cut_at, times=1 << 62)
        self._lose_renames = lose_renames
        self._unsynced: dict[Path, int] = {}
        self._pending: list[tuple[str, Path, Path]] = []
        self._is_off = False

    def write_some(self, descriptor: int, data: memoryview, path: Path) -> int:
        """Write, and remember that the file is not on disk yet."""
        self.before("write", path)
        if path not in self._unsynced:
            self._unsynced[path] = os.dup(descriptor)
        return os.write(descriptor, data)

    def fsync_file(self, descriptor: int, path: Path) -> None:
        """Force a file to disk and forget it."""
        super().fsync_file(descriptor, path)
        if path in self._unsynced:
            os.close(self._unsynced.pop(path))

    def rename(self, source: Path, target: Path) -> None:
        """Rename, and remember how to undo it."""
        super().rename(source, target)
        self._pending.append(("rename", source, target))

    def exchange(self, first: Path, second: Path) -> bool:
        """Swap, and remember how to undo it."""
        done = super().exchange(first, second)
        if done:
            self._pending.append(("exchange", first, second))
        return done

    def fsync_folder(self, folder: Path) -> None:
        """Force the entries of a folder to disk: its renames are final."""
        super().fsync_folder(folder)
        self._pending = [item for item in self._pending if item[2].parent != folder]

    def _strike(self, path: Path) -> None:
        if not self._is_off:
            self._is_off = True
            for descriptor in self._unsynced.values():
                os.ftruncate(descriptor, 0)
                os.close(descriptor)
            for kind, source, target in reversed(self._pending) if self._lose_renames else ():
                if kind == "rename":
                    target.rename(source)
                else:
                    FS().exchange(source, target)
        raise PowerCut(str(path))
