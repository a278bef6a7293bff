"""Byte streams that are decompressed on the fly and never give more than they may."""

from __future__ import annotations

import io
from typing import IO, Any, cast

from litebert.data.compressed import DAMAGE, MAX_RATIO, RATIO_FLOOR, codec_of, open_codec
from litebert.data.corpus.faults import Refused

__all__ = ["Allowance", "ByteStream", "decompressed", "stream_of"]

PEEK_BYTES = 8192
"""Least look-ahead of a stream, if it has as many bytes."""
_BUFFER_BYTES = 1 << 16

ByteStream = io.BufferedReader
"""What format readers read from: `peek(n)` looks ahead, `read1(n)` reads."""


class Allowance:
    """What one file on disk may still unpack to, over all its members and layers."""

    def __init__(self, size: int, max_bytes: int) -> None:
        """Allow `MAX_RATIO` times the size of the file, at most `max_bytes`.

        Args:
            size: bytes on disk.
            max_bytes: most bytes after unpacking.
        """
        self._size = size
        self._limit = min(max_bytes, max(RATIO_FLOOR, MAX_RATIO * size))
        self._used = 0

    def use(self, count: int) -> None:
        """Take `count` bytes.

        Raises:
            Refused: there are not as many left.
        """
        self._used += count
        if self._used > self._limit:
            raise Refused(
                "unpacks to too much",
                f"{self._size:,} bytes on disk become more than {self._limit:,}; allowed are "
                f"{MAX_RATIO} times the size and the most of `max_file_bytes`. If the file is "
                "honest, unpack it yourself",
            )


class _Raw(io.RawIOBase):
    """Passes bytes of another stream on, counts them, and turns damage into `Refused`."""

    def __init__(self, inner: IO[bytes], allowance: Allowance | None, what: str) -> None:
        super().__init__()
        self._inner = inner
        self._allowance = allowance
        self._what = what

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._inner.read(len(view))
        except (*DAMAGE, MemoryError) as error:
            raise Refused(
                "damaged",
                f"the {self._what} is damaged or cut short ({error}); fetch or write it again",
            ) from error
        view[: len(data)] = data
        if self._allowance is not None:
            self._allowance.use(len(data))
        return len(data)


def stream_of(
    inner: IO[bytes], allowance: Allowance | None = None, what: str = "file"
) -> ByteStream:
    """Return a buffered stream over `inner` whose faults are `Refused`.

    Args:
        inner: anything with `read(n)`.
        allowance: what its bytes are taken from, None if they lie on disk as they are.
        what: name for messages.
    """
    return io.BufferedReader(_Raw(inner, allowance, what), _BUFFER_BYTES)


def decompressed(stream: ByteStream, allowance: Allowance) -> ByteStream:
    """Return the stream without its layer of gzip, zstd, xz or bz2; known by its first bytes.

    Raises:
        Refused: two layers of compression.
    """
    codec = codec_of(stream.peek(PEEK_BYTES))
    if codec is None:
        return stream
    try:
        inner = open_codec(cast(IO[bytes], stream), codec)
    except DAMAGE as error:
        raise Refused("damaged", f"the {codec} data cannot be opened: {error}") from error
    clear = stream_of(inner, allowance, f"{codec} data")
    if codec_of(clear.peek(PEEK_BYTES)) is not None:
        raise Refused("packed twice", "the file is compressed twice; decompress it once yourself")
    return clear
