"""The protobuf wire format: fields of a message as numbers and ranges of bytes, nothing copied.

Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = [
    "FIXED32",
    "FIXED64",
    "RANGE",
    "VARINT",
    "WireError",
    "fields",
    "packed_count",
    "varints",
]

VARINT = 0
FIXED64 = 1
RANGE = 2
"""Length, then so many bytes: text, bytes, a message, or numbers in a row."""
FIXED32 = 5

_MASK = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are no protobuf message; the text says why."""


def fields(
    data: memoryview, start: int, end: int
) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
    """Yield (field number, wire type, value, range) of a message.

    The value is that of a varint, else 0; the range is where the bytes of any other field lie.

    Args:
        data: the whole file.
        start: first byte of the message.
        end: the byte behind it, at most the length of the file.

    Raises:
        WireError: the message is damaged or ends early.
    """
    position = start
    while position < end:
        key, position = _varint(data, position, end)
        number, kind = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise WireError(f"field number {number} at byte {position}")
        if kind == VARINT:
            value, position = _varint(data, position, end)
            yield number, kind, value, (position, position)
            continue
        if kind == RANGE:
            size, position = _varint(data, position, end)
        elif kind == FIXED64:
            size = 8
        elif kind == FIXED32:
            size = 4
        else:
            raise WireError(f"wire type {kind} at byte {position}")
        if size > end - position:
            raise WireError(f"the data end early at byte {position}")
        yield number, kind, 0, (position, position + size)
        position += size


def packed_count(data: memoryview, start: int, end: int) -> int:
    """Return how many varints lie in a range.

    Raises:
        WireError: the last one does not end.
    """
    if start == end:
        return 0
    if data[end - 1] & 0x80:
        raise WireError(f"a number does not end before byte {end}")
    # Each varint ends with the one byte whose high bit is clear.
    return len(bytes(data[start:end]).translate(None, bytes(range(128, 256))))


def varints(data: memoryview, start: int, end: int) -> list[int]:
    """Return the numbers of a range.

    Raises:
        WireError: the last one does not end.
    """
    found: list[int] = []
    while start < end:
        value, start = _varint(data, start, end)
        found.append(value)
    return found


def _varint(data: memoryview, position: int, end: int) -> tuple[int, int]:
    """Return a number of at most 64 bits and the position behind it."""
    result = shift = 0
    while position < end:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _MASK, position
        shift += 7
        if shift > 63:
            raise WireError(f"a number is too long at byte {position}")
    raise WireError(f"the data end early at byte {position}")
