"""What a request's header must look like, on its raw bytes, before anything reads a meaning into it.

Two programs that read a message differently can be played against each other (request smuggling); so
whatever has two readings is refused. Source: RFC 9112, sections 2.2, 3.2, 5, 6 and 11.2.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MOST_HEADERS", "HeaderFault", "check_header"]

MOST_HEADERS: Final = 100
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_HOST: Final = re.compile(rb"(?:[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_END: Final = b"\r\n\r\n"


class HeaderFault(Exception):  # noqa: N818 - the client's fault
    """A header that is refused.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def check_header(data: bytes, most_bytes: int) -> bool:
    """Check what has come of a request so far.

    Args:
        data: from its first byte.
        most_bytes: of the whole header.

    Returns:
        Whether the header is complete.

    Raises:
        HeaderFault: it is too long, or must not be.
    """
    end = data.find(_END)
    block = data if end < 0 else data[:end]
    if len(block) > most_bytes:
        raise HeaderFault(431, f"the header has more than {most_bytes} bytes")
    lines = block.split(b"\r\n")
    if len(lines) > MOST_HEADERS + 1:
        raise HeaderFault(431, f"the request has more than {MOST_HEADERS} header lines")
    for line in lines if end >= 0 else lines[:-1]:
        if b"\n" in line or b"\r" in line:
            raise HeaderFault(400, "lines end with CR LF")
    if end < 0:
        if b"\n" in lines[-1]:
            raise HeaderFault(400, "lines end with CR LF")
        return False
    request, *fields = lines
    _check_fields(request, fields)
    return True


def _check_fields(request: bytes, fields: list[bytes]) -> None:
    parts = request.split(b" ")
    if len(parts) != 3 or not all(parts) or _CONTROL.search(request):
        raise HeaderFault(400, "the request line is no METHOD TARGET VERSION")
    if parts[2] not in (b"HTTP/1.0", b"HTTP/1.1"):
        raise HeaderFault(400, "the version of HTTP is not 1.0 or 1.1")
    seen: dict[bytes, bytes] = {}
    for line in fields:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name):  # also: a line that goes on from the one before
            raise HeaderFault(400, "a header line is no NAME: VALUE")
        if _CONTROL.search(value):
            raise HeaderFault(400, "a header holds a control character")
        key = name.lower()
        if key in seen and key in (b"content-length", b"transfer-encoding", b"host"):
            raise HeaderFault(400, f"{key.decode()} is given twice")
        seen[key] = value.strip(b" \t")
    if not _HOST.fullmatch(seen.get(b"host", b"")):
        raise HeaderFault(400, "host is no NAME or NAME:PORT")
    length, coding = seen.get(b"content-length"), seen.get(b"transfer-encoding")
    if length is not None and coding is not None:
        raise HeaderFault(400, "content-length and transfer-encoding are both given")
    if length is not None and not _LENGTH.fullmatch(length):
        raise HeaderFault(400, "content-length is no number")
    if coding is not None and (coding.lower() != b"chunked" or parts[2] != b"HTTP/1.1"):
        raise HeaderFault(400, "the only transfer-encoding is chunked, in HTTP/1.1")
