"""What server and engine send each other: frames of a JSON header and bytes, nothing that could be code."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic_core import to_json

__all__ = ["Frame", "FrameReader", "pack"]

_SIZES: Final = struct.Struct(">II")
"""Bytes of the header, bytes behind it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    header: dict[str, Any]
    payload: bytes = b""


def pack(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """Return a frame as bytes; text that UTF-8 cannot hold travels as JSON escapes."""
    try:
        text = to_json(header)  # ten times as fast as the standard library on long texts
    except ValueError:
        text = json.dumps(header, separators=(",", ":")).encode("ascii")
    return b"".join((_SIZES.pack(len(text), len(payload)), text, payload))


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete now."""
        self._buffer += data
        found: list[Frame] = []
        start = 0
        while len(self._buffer) - start >= _SIZES.size:
            header_size, payload_size = _SIZES.unpack_from(self._buffer, start)
            middle = start + _SIZES.size + header_size
            end = middle + payload_size
            if len(self._buffer) < end:
                break
            header = json.loads(self._buffer[start + _SIZES.size : middle])
            found.append(Frame(cast("dict[str, Any]", header), bytes(self._buffer[middle:end])))
            start = end
        del self._buffer[:start]
        return found
