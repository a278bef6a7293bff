"""File-system writes that survive a crash: write, flush, fsync, rename, fsync the folder.

Every operation that changes the disk goes through one `FS` object, one method per operation, so
that a test can make the n-th one fail, write short, or be the last thing the process ever does.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from litebert.errors import CheckpointError

__all__ = [
    "FS",
    "FileStamp",
    "StorageError",
    "active_fs",
    "check_free_space",
    "fsync_folder",
    "is_special",
    "make_folder",
    "remove_tree",
    "rename",
    "replace_folder_atomic",
    "use_fs",
    "write_atomic",
    "write_file",
    "write_output",
]

Data = bytes | bytearray | memoryview | Iterable[bytes | bytearray | memoryview]
"""Content of a file: all of it, or its pieces in order."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_CHUNK_BYTES = 1 << 24


class StorageError(CheckpointError):
    """The disk refused: full, over quota, read-only, not permitted, or broken.

    Attributes:
        errno: number of the operating system's error, `errno.ENOSPC` for a full disk.
        needed_bytes: space that was asked for, if known.
    """

    exit_code = 74

    def __init__(
        self, message: str, *, path: Path, errno: int, needed_bytes: int | None = None
    ) -> None:
        super().__init__(message, path=path)
        self.errno = errno
        self.needed_bytes = needed_bytes

    @property
    def is_disk_full(self) -> bool:
        """Whether freeing space would cure it."""
        return self.errno in _FULL


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What a written file must look like when it is read back."""

    size: int
    """Length in bytes."""
    sha256: str
    """Hexadecimal digest of the content."""


class FS:
    """The real file system. Sub-classes override `before` to inject faults."""

    def before(self, operation: str, path: Path) -> None:
        """Run just before each operation that changes the disk; does nothing here.

        `operation` is one of open, write, fsync, mkdir, rename, exchange, fsync_folder, unlink,
        rmdir. An `OSError` raised from here is handled as if the operation itself had failed.
        """

    def write_some(self, descriptor: int, data: memoryview, path: Path) -> int:
        """Write a part of `data`, at least one byte, and return how many bytes were written."""
        self.before("write", path)
        return os.write(descriptor, data[:_CHUNK_BYTES])

    def fsync_file(self, descriptor: int, path: Path) -> None:
        """Force the content of an open file to disk."""
        self.before("fsync", path)
        os.fsync(descriptor)

    def write_file(self, path: Path, data: Data, *, named: Path | None = None) -> FileStamp:
        """Write a new or existing file and force its content to disk (not its folder entry).

        Args:
            path: the file.
            data: its content.
            named: the file that messages name, where `path` is one that only stands in for it.

        Raises:
            StorageError: disk full (with the bytes already written) or any other refusal.
        """
        digest, size = hashlib.sha256(), 0
        pieces = (data,) if isinstance(data, bytes | bytearray | memoryview) else data
        with _storage_errors(named or path):
            self.before("open", path)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
            descriptor = os.open(path, flags, 0o666)
            try:
                for piece in pieces:
                    rest = memoryview(piece).cast("B")
                    digest.update(rest)
                    size += len(rest)
                    while rest:
                        rest = rest[self.write_some(descriptor, rest, path) :]
                if stat.S_ISREG(os.fstat(descriptor).st_mode):  # others keep nothing
                    self.fsync_file(descriptor, path)
            finally:
                os.close(descriptor)
        return FileStamp(size=size, sha256=digest.hexdigest())

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents, for good; an existing one is fine.

        Raises:
            StorageError: not permitted, read-only, full, or a file stands there.
        """
        if path.is_dir():
            return
        if path.parent != path:
            self.make_folder(path.parent)
        with _storage_errors(path):
            self.before("mkdir", path)
            path.mkdir(exist_ok=True)
        self.fsync_folder(path.parent)

    def rename(self, source: Path, target: Path) -> None:
        """Give `source` the name `target`, replacing a file of that name at once.

        Raises:
            StorageError: the operating system refused.
        """
        with _storage_errors(target):
            self.before("rename", target)
            source.replace(target)

    def exchange(self, first: Path, second: Path) -> bool:
        """Swap two names in one call; return False where the file system cannot.

        Raises:
            StorageError: the operating system refused.
        """
        with _storage_errors(second):
            self.before("exchange", second)
            return _exchange(first, second)

    def fsync_folder(self, folder: Path) -> None:
        """Force a folder's entries to disk, so that a rename outlives a power cut.

        Raises:
            StorageError: the operating system refused.
        """
        if os.name == "nt":  # Windows has no such call; NTFS journals its entries
            return
        with _storage_errors(folder):
            self.before("fsync_folder", folder)
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def remove_tree(self, path: Path) -> None:
        """Delete a file, or a folder with all its content; a missing one is fine.

        Raises:
            StorageError: the operating system refused.
        """
        with _storage_errors(path):
            if not path.is_symlink() and path.is_dir():
                for child in sorted(path.iterdir()):
                    self.remove_tree(child)
                self.before("rmdir", path)
                path.rmdir()
            elif path.exists() or path.is_symlink():
                self.before("unlink", path)
                path.unlink()

    def write_atomic(self, path: Path, data: Data) -> FileStamp:
        """Write a file so that a reader sees the old or the new content, never a part.

        Raises:
            StorageError: the disk refused, or there is no such folder; the old file is untouched.
        """
        temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
        try:
            stamp = self.write_file(temporary, data, named=path)
            self.rename(temporary, path)
        except BaseException:
            with contextlib.suppress(StorageError):
                self.remove_tree(temporary)
            raise
        self.fsync_folder(path.parent)
        return stamp

    def replace_folder_atomic(self, temporary: Path, final: Path) -> None:
        """Put the finished folder `temporary` in the place of `final`, old or new, never a mix.

        The files in `temporary` must have been written by `write_file`. Where the system can swap
        two names in one call (Linux, macOS) there is no moment without `final`; elsewhere there
        is one between two renames, and the old folder is put back if the second fails.

        Raises:
            StorageError: the disk refused; `final` is as before.
        """
        self.fsync_folder(temporary)
        if not final.exists():
            self.rename(temporary, final)
            self.fsync_folder(final.parent)
            return
        old = temporary
        if not self.exchange(temporary, final):
            old = final.with_name(f".{final.name}.old-{os.getpid()}")
            self.remove_tree(old)
            self.rename(final, old)
            try:
                self.rename(temporary, final)
            except StorageError:
                self.rename(old, final)
                raise
        self.fsync_folder(final.parent)
        self.remove_tree(old)

    def free_bytes(self, folder: Path) -> int:
        """Return the space an ordinary user may still write on the disk of `folder`, in bytes."""
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def check_free_space(self, folder: Path, needed_bytes: int) -> None:
        """Refuse before writing when the disk of `folder` has less than `needed_bytes` left.

        Raises:
            StorageError: not enough space; carries the bytes needed.
        """
        free = self.free_bytes(folder)
        if free < needed_bytes:
            raise StorageError(
                f"the disk has {free:,} bytes free, {needed_bytes:,} are needed; "
                "free some space or choose another folder",
                path=folder,
                errno=errno.ENOSPC,
                needed_bytes=needed_bytes,
            )


_active: FS = FS()


def active_fs() -> FS:
    """Return the file system that the functions of this module use."""
    return _active


@contextlib.contextmanager
def use_fs(fs: FS) -> Generator[FS]:
    """Send every write of this process through `fs` while the block runs."""
    global _active  # noqa: PLW0603 - one switch for the process is the purpose
    previous, _active = _active, fs
    try:
        yield fs
    finally:
        _active = previous


def is_special(path: Path) -> bool:
    """Whether something stands there that is neither a file nor a folder: a pipe, a device."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def write_file(path: Path, data: Data, *, named: Path | None = None) -> FileStamp:
    """Write and fsync a file; see `FS.write_file`."""
    return _active.write_file(path, data, named=named)


def make_folder(path: Path) -> None:
    """Create a folder and its parents; see `FS.make_folder`."""
    _active.make_folder(path)


def rename(source: Path, target: Path) -> None:
    """Rename, replacing a file; see `FS.rename`."""
    _active.rename(source, target)


def fsync_folder(folder: Path) -> None:
    """Force a folder's entries to disk; see `FS.fsync_folder`."""
    _active.fsync_folder(folder)


def remove_tree(path: Path) -> None:
    """Delete a file or folder; see `FS.remove_tree`."""
    _active.remove_tree(path)


def write_atomic(path: Path, data: Data) -> FileStamp:
    """Write a file, old or new but never a part; see `FS.write_atomic`."""
    return _active.write_atomic(path, data)


def write_output(path: Path, data: Data) -> FileStamp:
    """Write to a name that a user told: atomically a file, straight a pipe or device.

    `/dev/stdout` and `>(gzip)` are such names; a rename would put a file in their place.

    Raises:
        StorageError: the disk refused, or there is no such folder; an old file is untouched.
    """
    write = _active.write_file if is_special(path) else _active.write_atomic
    return write(path, data)


def replace_folder_atomic(temporary: Path, final: Path) -> None:
    """Put a finished folder in place; see `FS.replace_folder_atomic`."""
    _active.replace_folder_atomic(temporary, final)


def check_free_space(folder: Path, needed_bytes: int) -> None:
    """Refuse before writing when the disk is too full; see `FS.check_free_space`."""
    _active.check_free_space(folder, needed_bytes)


@contextlib.contextmanager
def _storage_errors(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        number = error.errno or errno.EIO
        if number in _FULL:
            cure = "the disk is full; free some space or choose another folder"
        elif number in (errno.EACCES, errno.EPERM, errno.EROFS):
            cure = "not permitted to write here; choose another folder"
        elif number == errno.ENOENT and not path.parent.exists():
            cure = "there is no such folder to write in; make it, or choose another"
        else:
            cure = "cannot write here; check the disk and the path"
        raise StorageError(f"{cure} ({os.strerror(number)})", path=path, errno=number) from error


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one system call; False where the system or file system has none."""
    name, at_fdcwd = {"linux": ("renameat2", -100), "darwin": ("renameatx_np", -2)}.get(
        sys.platform, ("", 0)
    )
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), name) if name else None
    except (AttributeError, OSError, TypeError):
        call = None
    if call is None:
        return False
    swap_flag = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
    done: int = call(at_fdcwd, os.fsencode(first), at_fdcwd, os.fsencode(second), swap_flag)
    if done == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(second))
