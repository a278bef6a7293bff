"""Members of ZIP and tar archives as streams, in stored order; nothing is ever unpacked to disk."""

from __future__ import annotations

import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Any, Final, cast

from litebert.data.corpus.faults import Refused, Reporter
from litebert.data.corpus.streams import Allowance, ByteStream, stream_of

__all__ = ["tar_members", "zip_members"]

Member = tuple[str, ByteStream]

_MAX_DIRECTORY_BYTES: Final = 32 << 20
"""Largest table of contents of a ZIP file: it is held in memory."""
_MAX_HEADER_BYTES: Final = 4 << 20
"""Most bytes between two members of a tar file: their headers are held in memory."""
_END_RECORD: Final = 22
_BLOCK: Final = 10_240
_ENCRYPTED: Final = 0x1
_DAMAGE: Final = (
    tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, ValueError, OverflowError,
    RuntimeError, MemoryError, struct.error, zlib.error,
)  # fmt: skip
"""What the two modules raise on hostile bytes. RuntimeError stands for unknown compression methods
and wrong passwords, MemoryError for sizes that a header lies about. All become `Refused`."""


def zip_members(
    file: IO[bytes], allowance: Allowance, max_members: int, report: Reporter
) -> Iterator[Member]:
    """Yield name and content of each file in a ZIP archive.

    Args:
        file: the archive; it must be able to seek.
        allowance: what the bytes of members are taken from.
        max_members: more are refused.
        report: told about links and encrypted members, which are left out.

    Raises:
        Refused: damaged, a hostile name, or too many members.
    """
    try:
        _check_directory(file)
        archive = zipfile.ZipFile(file)
    except _DAMAGE as error:
        raise _damaged("ZIP", error) from error
    with archive:
        items = archive.infolist()
        if len(items) > max_members:
            raise _too_many(max_members)
        for item in items:
            _refuse_hostile(item.filename)
        for item in items:
            if item.is_dir():
                continue
            report.member = item.filename
            kind = stat.S_IFMT(item.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                _report_special(report)
                continue
            if item.flag_bits & _ENCRYPTED:
                report.drop("encrypted", "the member is encrypted; unpack it yourself", at=False)
                continue
            try:
                content = archive.open(item)
            except _DAMAGE as error:
                raise _damaged("ZIP", error) from error
            yield (
                item.filename,
                stream_of(cast(IO[bytes], _Guarded(content, "ZIP")), allowance, "ZIP member"),
            )


def tar_members(stream: ByteStream, max_members: int, report: Reporter) -> Iterator[Member]:
    """Yield name and content of each file in a tar archive, which is read once from front to back.

    Args:
        stream: the archive, decompressed; its bytes are accounted for already.
        max_members: more are refused.
        report: told about links, devices and sparse files, which are left out.

    Raises:
        Refused: damaged, a hostile name, or too many members.
    """
    source = _HeaderQuota(stream)
    source.left = _MAX_HEADER_BYTES  # the first header is read when the archive is opened
    try:
        archive = tarfile.open(fileobj=cast(IO[bytes], source), mode="r|", bufsize=_BLOCK)  # noqa: SIM115
    except _DAMAGE as error:
        raise _damaged("tar", error) from error
    count = 0
    while True:
        source.left = _MAX_HEADER_BYTES
        try:
            item = archive.next()
        except _DAMAGE as error:
            raise _damaged("tar", error) from error
        if item is None:
            return
        cast(Any, archive).members.clear()  # or the list of them grows with the archive
        count += 1
        if count > max_members:
            raise _too_many(max_members)
        source.left = None
        _refuse_hostile(item.name)
        report.member = item.name
        content = archive.extractfile(item) if item.isreg() and not item.issparse() else None
        if content is not None:
            content = _Guarded(content, "tar")
            yield item.name, stream_of(cast(IO[bytes], content), None, "tar member")
            while content.read(_BLOCK * 8):
                pass
        elif not item.isdir():
            _report_special(report)


class _Guarded:
    """Turns what an archive module raises while a member is read into `Refused`."""

    def __init__(self, inner: IO[bytes], what: str) -> None:
        self._inner = inner
        self._what = what

    def read(self, size: int = -1) -> bytes:
        try:
            return self._inner.read(size)
        except _DAMAGE as error:
            raise _damaged(self._what, error) from error


class _HeaderQuota:
    """Passes an archive on, but only so much while the reader looks for the next member."""

    def __init__(self, inner: ByteStream) -> None:
        self._inner = inner
        self.left: int | None = None

    def read(self, size: int) -> bytes:
        data = self._inner.read(size)
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                raise Refused(
                    "hostile archive",
                    f"the archive has a header of more than {_MAX_HEADER_BYTES:,} bytes; "
                    "unpack it yourself if you trust it",
                )
        return data


def _check_directory(file: IO[bytes]) -> None:
    """Refuse a table of contents that is too large, before it is read."""
    size = file.seek(0, io.SEEK_END)
    tail_size = min(size, _END_RECORD + 0xFFFF + 20 + 56)
    file.seek(size - tail_size)
    tail = file.read(tail_size)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + _END_RECORD > len(tail):
        raise zipfile.BadZipFile("it has no end record, so it is cut short")
    directory = int.from_bytes(tail[at + 12 : at + 16], "little")
    wide = tail.rfind(b"PK\x06\x06")
    if wide >= 0 and wide + 48 <= len(tail):
        directory = max(
            int.from_bytes(tail[wide + 40 : wide + 48], "little"),
            directory if directory != 0xFFFFFFFF else 0,
        )
    if directory > _MAX_DIRECTORY_BYTES:
        raise Refused(
            "hostile archive",
            f"its table of contents has {directory:,} bytes, allowed are {_MAX_DIRECTORY_BYTES:,}; "
            "make several archives",
        )
    file.seek(0)


def _refuse_hostile(name: str) -> None:
    plain = name.replace("\\", "/")
    path = PurePosixPath(plain)
    if path.is_absolute() or ".." in path.parts or plain[1:2] == ":" or "\0" in plain:
        raise Refused(
            "hostile archive",
            f"the member {name!r:.200} has a name that leads out of the archive's folder; such "
            "archives are refused, make it again with relative names",
        )


def _report_special(report: Reporter) -> None:
    report.drop(
        "link or device", "a link, device or sparse file in an archive is left out", at=False
    )


def _too_many(most: int) -> Refused:
    return Refused(
        "hostile archive",
        f"the archive has more than {most:,} members; make several, or raise `max_members`",
    )


def _damaged(what: str, error: Exception) -> Refused:
    return Refused(
        "damaged", f"the {what} archive is damaged or cut short ({error}); fetch or write it again"
    )
