"""Files to bytes: hashing, decompression by content, and refusal of decompression bombs."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from litebert.errors import DataError

MAX_BYTES = 4 << 30
"""Most bytes of one file after decompression."""
MAX_RATIO = 200
"""Most bytes that one compressed byte may become."""
RATIO_FLOOR = 1 << 20
"""Below this size in bytes the ratio is not looked at: a tiny file may well be repetitive."""
_CHUNK = 1 << 20
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"),
          (b"BZh", "bz2"))  # fmt: skip
_FOREIGN = (
    (b"PK\x03\x04", "a ZIP archive or Excel workbook", "unpack it, or save the sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel or Word file", "save the sheet as CSV"),
    (b"%PDF", "a PDF", "extract its text into a CSV"),
    (b"SQLite format 3\x00", "an SQLite database", "export the table as CSV"),
    (b"\x89PNG", "an image", "give a table of texts"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-zip archive", "unpack it"),
    (b"ARROW1", "an Arrow/Feather file", "write it as Parquet"),
)
COMPRESSED_SUFFIXES = (".gz", ".zst", ".xz", ".bz2")
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a decompressing stream raises when its data are damaged or cut short."""


@dataclass(frozen=True, slots=True)
class FileBytes:
    """A file in memory.

    Attributes:
        data: content after decompression.
        sha256: hex digest of the file as it is on disk.
        name: file name without a compression suffix, lower-case.
    """

    data: bytes
    sha256: str
    name: str


def read_bytes(path: Path, *, max_bytes: int = MAX_BYTES) -> FileBytes:
    """Read a regular file, decompressing gzip, zstd, xz or bz2 by its first bytes.

    Raises:
        DataError: missing, unreadable, empty, not a regular file, too large, corrupt, of a
            foreign format, or a decompression bomb.
    """
    raw = _read_raw(path, max_bytes)
    if not raw:
        raise DataError("the file is empty; give a file with rows", path=path)
    for magic, what, remedy in _FOREIGN:
        if raw.startswith(magic):
            raise DataError(f"the file is {what}, not a table; {remedy}", path=path)
    codec = codec_of(raw)
    name = path.name.lower()
    suffix = next((end for end in COMPRESSED_SUFFIXES if name.endswith(end)), None)
    data = raw if codec is None else _decompress(raw, codec, path, max_bytes)
    if not data:
        raise DataError("the file is empty after decompression", path=path)
    return FileBytes(data, hashlib.sha256(raw).hexdigest(), name.removesuffix(suffix or ""))


def peek_bytes(path: Path, size: int = 256) -> bytes:
    """Return the first bytes of a regular file, after decompression.

    Raises:
        DataError: the file cannot be used.
    """
    try:
        if path.is_file():
            with path.open("rb") as file:
                start = file.read(max(size, 8))
            if codec_of(start) is None:
                return start[:size]
    except OSError as error:
        raise DataError(f"cannot read the file: {error}", path=path) from error
    return read_bytes(path).data[:size]


def _read_raw(path: Path, max_bytes: int) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise DataError("this is a folder, not a file; name a file in it", path=path)
        if not stat.S_ISREG(status.st_mode):
            raise DataError("this is a device or pipe; give a regular file", path=path)
        if status.st_size > max_bytes:
            raise DataError(
                f"the file has {status.st_size:,} bytes, at most {max_bytes:,} are read; split it",
                path=path,
            )
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DataError("no such file; check the path", path=path) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
        raise DataError(f"cannot read the file: {error}", path=path) from error


def codec_of(start: bytes) -> str | None:
    """Name the compression of data by their first bytes: gzip, zstd, xz, bz2 or None."""
    return next((name for magic, name in _MAGIC if start.startswith(magic)), None)


def open_codec(stream: IO[bytes], codec: str) -> IO[bytes]:
    """Return a stream of the decompressed bytes of `stream`; reading it may raise `DAMAGE`.

    Args:
        stream: compressed bytes, several members in a row allowed.
        codec: a name that `codec_of` gave.
    """
    if codec == "gzip":
        return cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    if codec == "xz":
        return cast(IO[bytes], lzma.LZMAFile(stream))
    if codec == "bz2":
        return cast(IO[bytes], bz2.BZ2File(stream))
    return cast(IO[bytes], io.BufferedReader(_ZstdStream(stream), _CHUNK))


class _ZstdStream(io.RawIOBase):
    """Zstandard by pyarrow, which is only imported here: it is large and rarely needed."""

    def __init__(self, stream: IO[bytes]) -> None:
        import pyarrow as pa

        self._fault = pa.ArrowException
        self._inner = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes; damage is an OSError."""
        try:
            data = self._inner.read(len(buffer))
        except self._fault as error:
            raise OSError(str(error)) from error
        buffer[: len(data)] = data
        return len(data)


def _decompress(raw: bytes, codec: str, path: Path, max_bytes: int) -> bytes:
    limit = min(max_bytes, max(RATIO_FLOOR, MAX_RATIO * len(raw)))
    parts: list[bytes] = []
    total = 0
    try:
        with open_codec(io.BytesIO(raw), codec) as stream:
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                if total > limit:
                    raise DataError(
                        f"{len(raw):,} compressed bytes become more than {limit:,}; allowed are "
                        f"{MAX_RATIO} times the compressed size and {max_bytes:,} bytes in all. "
                        "If the file is honest, decompress it yourself",
                        path=path,
                    )
                parts.append(chunk)
    except DAMAGE as error:
        raise DataError(
            f"the {codec} data is damaged or cut short ({error}); fetch or write it again",
            path=path,
        ) from error
    return b"".join(parts)
