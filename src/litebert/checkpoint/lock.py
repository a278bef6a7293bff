"""One writer per run folder: a lock that dies with its process and names its owner."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from litebert.checkpoint.fs import StorageError, make_folder
from litebert.errors import CheckpointError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None

log = logging.getLogger(__name__)

_UNSUPPORTED = frozenset({errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL})


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a lock."""

    pid: int
    host: str
    boot_id: str
    """Changes at every start of the machine; empty where the system does not tell."""

    def is_alive(self) -> bool:
        """Whether that process may still run; a process of another machine always may."""
        if self.host != socket.gethostname():
            return True
        if self.boot_id != _boot_id():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True


class RunLock:
    """An exclusive lock on a folder, for use in a `with` block.

    `flock` is used where the file system has it, so a killed process never leaves a stale lock.
    Elsewhere the lock is a file created exclusively; it counts as stale when its process is gone.
    """

    def __init__(self, path: Path) -> None:
        """Name the lock file, for example `RUN/run.lock`; its folder is created when needed."""
        self.path = path
        self._descriptor: int | None = None
        self._is_exclusive_file = False

    def __enter__(self) -> RunLock:
        """Take the lock.

        Raises:
            CheckpointError: another process has it; the message names process and machine.
            StorageError: the lock file cannot be created here.
        """
        make_folder(self.path.parent)
        try:
            self._take()
        except OSError as error:
            number = error.errno or errno.EIO
            raise StorageError(
                f"cannot lock this run ({os.strerror(number)})", path=self.path, errno=number
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            if self._is_exclusive_file:
                self.path.unlink()
            else:  # the file stays: deleting it would let two processes lock two different files
                os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def owner(self) -> Owner | None:
        """Return who wrote the lock file last, or None when it is free or unreadable."""
        try:
            return Owner(**json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def _take(self) -> None:
        if fcntl is None:
            self._take_exclusive_file()
            return
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise self._refusal() from error
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _UNSUPPORTED:
                raise
            if self.path.stat().st_size == 0:
                self.path.unlink()
            self._take_exclusive_file()
            return
        previous = self.owner()
        if previous is not None and previous.host != socket.gethostname():
            log.warning(
                "%s was last held by process %d on %s, which did not release it; "
                "make sure that it no longer runs",
                self.path,
                previous.pid,
                previous.host,
            )
        self._descriptor, self._is_exclusive_file = descriptor, False
        os.ftruncate(descriptor, 0)
        self._sign(descriptor)

    def _take_exclusive_file(self) -> None:
        owner = self.owner()
        if owner is not None and not owner.is_alive():
            self.path.unlink(missing_ok=True)
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError as error:
            raise self._refusal() from error
        self._descriptor, self._is_exclusive_file = descriptor, True
        self._sign(descriptor)

    def _sign(self, descriptor: int) -> None:
        owner = Owner(pid=os.getpid(), host=socket.gethostname(), boot_id=_boot_id())
        os.write(descriptor, json.dumps(asdict(owner)).encode())

    def _refusal(self) -> CheckpointError:
        owner = self.owner()
        who = "another process" if owner is None else f"process {owner.pid} on {owner.host}"
        return CheckpointError(
            f"this run is in use by {who}; wait for it, stop it, or choose another folder",
            path=self.path.parent,
        )


def _boot_id() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""
