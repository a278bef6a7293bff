"""Bytes to lines of text as a stream: told encodings, byte-order marks, any line end."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import Final

from litebert.data.corpus.faults import Refused, Reporter
from litebert.data.corpus.streams import ByteStream

__all__ = ["BAD_BYTE", "Line", "lines_of", "read_all_text"]

BAD_BYTE: Final = "\udc80"
"""Stands in a text where bytes could not be decoded and the policy is to go on."""
_BLOCK_BYTES: Final = 1 << 18
_HANDLER: Final = "litebert.bad-bytes"
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

Line = tuple[int, str, bool]
"""1-based number, text without its end, and whether the rest of a long line follows."""


def _mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return BAD_BYTE, error.end


codecs.register_error(_HANDLER, _mark)


def lines_of(
    stream: ByteStream, encoding: str | None, report: Reporter, max_chars: int
) -> Iterator[Line]:
    r"""Yield the lines of a text; ends are "\n", "\r\n" or "\r".

    Args:
        stream: bytes.
        encoding: codec where there is no byte-order mark; None is UTF-8.
        report: told about bytes that do not decode; their place then holds `BAD_BYTE`.
        max_chars: a longer line comes in several parts.

    Raises:
        DataError: bytes that do not decode, under the policy "error".
    """
    number, rest = 1, ""
    for block in _blocks(stream, encoding, report):
        parts = (rest + block).split("\n")
        rest = parts.pop()
        for part in parts:
            while len(part) > max_chars:
                cut = _cut(part, max_chars)
                yield number, part[:cut], True
                part = part[cut:]
            yield number, part, False
            number += 1
        while len(rest) > max_chars:
            cut = _cut(rest, max_chars)
            yield number, rest[:cut], True
            rest = rest[cut:]
    if rest:
        yield number, rest, False


def read_all_text(
    stream: ByteStream, encoding: str | None, report: Reporter, max_chars: int
) -> str:
    """Return a text whole.

    Raises:
        DataError: bytes that do not decode, under the policy "error".
        Refused: more than `max_chars` characters.
    """
    parts: list[str] = []
    size = 0
    for block in _blocks(stream, encoding, report):
        parts.append(block)
        size += len(block)
        if size > max_chars:
            raise Refused(
                "too large",
                f"a JSON document of more than {max_chars:,} characters is not read whole; "
                "write it as JSON lines, one object a line",
            )
    return "".join(parts)


def _cut(text: str, most: int) -> int:
    space = text.rfind(" ", most // 2, most)
    return most if space < 0 else space + 1


def _blocks(stream: ByteStream, encoding: str | None, report: Reporter) -> Iterator[str]:
    start = stream.peek(4)
    bom, name = next(
        ((bom, name) for bom, name in _BOMS if start.startswith(bom)), (b"", encoding or "utf-8")
    )
    stream.read(len(bom))
    decoder = codecs.getincrementaldecoder(name)("strict")
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    offset = len(bom)
    while True:
        data = stream.read(_BLOCK_BYTES)
        text = _decode(decoder, data, name, offset, report)
        offset += len(data)
        text = newlines.decode(text, final=not data)
        if text:
            yield text
        if not data:
            return


def _decode(
    decoder: codecs.IncrementalDecoder, data: bytes, name: str, offset: int, report: Reporter
) -> str:
    before = decoder.getstate()
    try:
        return decoder.decode(data, final=not data)
    except UnicodeDecodeError as error:
        if report.is_strict:
            place = offset - len(before[0]) + error.start
            raise report.error(
                f"byte 0x{error.object[error.start]:02X} at offset {place:,} is not {name} "
                f"({error.reason}); tell the encoding, for example --encoding cp1252, repair the "
                "file, or leave such documents out with --on-bad skip"
            ) from error
    except UnicodeError as error:  # of the stream, not of a byte: no byte-order mark, above all
        raise _not_this(name, error) from error
    decoder.errors = _HANDLER
    decoder.setstate(before)
    try:
        return decoder.decode(data, final=not data)
    except UnicodeError as error:
        raise _not_this(name, error) from error


def _not_this(name: str, error: UnicodeError) -> Refused:
    return Refused(
        "bad bytes",
        f"this cannot be read as {name} ({error}); leave --encoding out for UTF-8, or tell another, "
        "for UTF-16 without a byte-order mark utf-16-le or utf-16-be",
    )
