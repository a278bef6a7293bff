"""A byte stream to rows: plain texts, `text<TAB>pair`, or JSON objects, one a line, as they arrive."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

from litebert.data.rows import MAX_CELL_CHARS
from litebert.errors import DataError, SettingsError

__all__ = ["BATCH_LINES", "stream_rows"]

BATCH_LINES: Final = 256
"""Most lines that are handed on together: enough to fill batches, little to hold in memory."""
_READ_BYTES: Final = 1 << 16

Line = tuple[int, str]
Row = dict[str, Any]


def stream_rows(
    stream: IO[bytes],
    columns: tuple[str, ...],
    *,
    encoding: str | None = None,
    name: str = "<stdin>",
) -> Iterator[list[Row]]:
    """Yield rows in lists: whatever has arrived, so that a person who types is answered at once.

    The first line that is not blank decides the form, unless the name ends in `.jsonl`: JSON lines
    if it is a JSON object, else plain text. Plain lines give one row each, blank ones too; blank
    lines between JSON objects are passed over. Memory does not grow with the stream.

    Args:
        stream: lines that end with LF or CRLF.
        columns: names of the one or two texts of a row.
        encoding: codec; UTF-8, with or without its mark, when None.
        name: what messages call the stream.

    Raises:
        DataError: undecodable bytes, an overlong line, or a line that breaks the form; the rows
            before it have been yielded.
        SettingsError: no such encoding.
    """
    form = _Form(columns, Path(name))
    for batch in _line_batches(stream, encoding or "utf-8-sig", Path(name)):
        rows: list[Row] = []
        try:
            for number, line in batch:
                rows.extend(form.rows(number, line))
        except DataError:
            if rows:
                yield rows
            raise
        if rows:
            yield rows
    rest = form.end()
    if rest:
        yield rest


class _Form:
    """What a line means; found out at the first line that is not blank."""

    def __init__(self, columns: tuple[str, ...], path: Path) -> None:
        self._columns = columns
        self._path = path
        is_named = path.name.lower().endswith((".jsonl", ".ndjson"))
        self._is_json: bool | None = True if is_named else None
        self._why = "the file's name says it is" if is_named else "the first line was"
        self._blanks = 0  # lines before the form is known

    def rows(self, number: int, line: str) -> list[Row]:
        if self._is_json is None:
            if not line.strip():
                self._blanks += 1
                return []
            self._is_json = _is_json_object(line)
            return [*self.end(), *self._row(number, line)]
        return self._row(number, line)

    def end(self) -> list[Row]:
        """The rows of blank lines that were held back."""
        blanks, self._blanks = self._blanks, 0
        return [] if self._is_json else [self._blank() for _ in range(blanks)]

    def _row(self, number: int, line: str) -> list[Row]:
        if self._is_json:
            return [self._json_row(number, line)] if line.strip() else []
        if len(self._columns) == 1:
            return [{self._columns[0]: line}]
        if not line.strip():
            return [self._blank()]
        first, tab, second = line.partition("\t")
        if not tab:
            raise DataError(
                "the model takes pairs; give text<TAB>second text", path=self._path, line=number
            )
        return [{self._columns[0]: first, self._columns[1]: second}]

    def _blank(self) -> Row:
        return dict.fromkeys(self._columns, "")

    def _json_row(self, number: int, line: str) -> Row:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"not JSON, although {self._why}: {error}", path=self._path, line=number
            ) from error
        if not isinstance(value, dict):
            raise DataError(f"expected a JSON object, got {line:.60}", path=self._path, line=number)
        row = cast(Row, value)
        missing = [column for column in self._columns if column not in row]
        if missing:
            raise DataError(
                f"no field {missing[0]!r}; the object has {', '.join(map(repr, row)) or 'none'}; "
                "name the text with --text-column",
                path=self._path,
                line=number,
            )
        return row


def _is_json_object(line: str) -> bool:
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False  # a text that begins with a brace


def _line_batches(stream: IO[bytes], encoding: str, path: Path) -> Iterator[list[Line]]:
    try:
        decoder = codecs.getincrementaldecoder(encoding)(errors="strict")
    except LookupError as error:
        raise SettingsError(
            f"unknown encoding {encoding!r}; examples: utf-8, latin-1, utf-16"
        ) from error
    number, pending, fault = 0, "", None
    while fault is None:
        chunk = _read_some(stream)
        text, fault = _decode(decoder, chunk, is_last=not chunk)
        *lines, pending = (pending + text).split("\n")
        if not chunk and pending and fault is None:
            lines, pending = [*lines, pending], ""
        for start in range(0, len(lines), BATCH_LINES):
            part = lines[start : start + BATCH_LINES]
            yield [(number + i, line.removesuffix("\r")) for i, line in enumerate(part, start=1)]
            number += len(part)
        if len(pending) > MAX_CELL_CHARS:
            raise DataError(
                f"the line is longer than {MAX_CELL_CHARS:,} characters; are there no line ends?",
                path=path,
                line=number + 1,
            )
        if not chunk:
            break
    if fault is not None:
        raise DataError(
            f"not {encoding.removesuffix('-sig')}: {fault.reason}; convert it, or tell --encoding",
            path=path,
            line=number + 1,
        ) from fault


def _decode(
    decoder: codecs.IncrementalDecoder, chunk: bytes, *, is_last: bool
) -> tuple[str, UnicodeDecodeError | None]:
    """Return the text, up to the first byte that has none."""
    try:
        return decoder.decode(chunk, is_last), None
    except UnicodeDecodeError as error:
        good = error.object[: error.start]
        decoder.reset()
        return decoder.decode(good, False), error


def _read_some(stream: IO[bytes]) -> bytes:
    """Return what is there, waiting only for the first byte; empty at the end."""
    read = getattr(stream, "read1", stream.read)
    return cast(bytes, read(_READ_BYTES))
