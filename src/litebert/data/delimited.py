"""Separated values to records: exact line numbers, quoted newlines, and named faults.

Python's `csv` module gives no line for a record that spans several, limits cells and accepts
broken quotes silently; this reader does none of that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from litebert.data.header import has_header, name_columns
from litebert.data.rows import BadRows, Row, row_problem
from litebert.errors import DataError, SettingsError

DELIMITERS = (",", "\t", ";", "|")
_EXCEL_HINT = re.compile(r"sep=(.)(\r?\n|\r)")
_SNIFF_RECORDS = 200
_SNIFF_CHARS = 1 << 18


@dataclass(slots=True)
class Record:
    """One record as it stands in the file.

    Attributes:
        line: 1-based line where it starts.
        fields: its cells.
        problem: why it cannot be used, or None.
    """

    line: int
    fields: list[str]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file separates its cells.

    Attributes:
        delimiter: one character between cells.
        quoting: whether double quotes enclose cells (False: they are ordinary characters).
        header: whether the first record names the columns.
    """

    delimiter: str
    quoting: bool
    header: bool


def read_delimited(
    text: str,
    bad_rows: BadRows,
    path: Path,
    *,
    delimiter: str | None = None,
    quoting: bool | None = None,
    header: bool | None = None,
) -> tuple[list[str], list[Row], Dialect]:
    """Read the records of a whole file.

    Args:
        text: decoded content.
        bad_rows: receives every record that cannot be used.
        path: file to name in rows and errors.
        delimiter: separating character, or None to find out among comma, tab, semicolon, bar.
        quoting: whether double quotes enclose cells, or None to find out.
        header: whether the first record names the columns, or None to find out.

    Returns:
        Column names, rows, and the dialect that was used.

    Raises:
        DataError: no records, duplicate column names, or a bad row under the policy "error".
        SettingsError: the delimiter is not one character.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise SettingsError(
            f"delimiter {delimiter!r} must be one character, not a quote or newline"
        )
    hint = _EXCEL_HINT.match(text)
    if hint is not None:
        delimiter = delimiter or hint[1]
        text = hint[2] + text[hint.end() :]  # a blank line, so that line numbers stay
    separator = delimiter or sniff_delimiter(text)
    quoted = _quotes_enclose(text, separator) if quoting is None else quoting
    records = list(islice(read_records(text, separator, quoting=quoted), _SNIFF_RECORDS))
    if not records:
        raise DataError("the file holds only blank lines; give a file with rows", path=path)
    first = records[0]
    if first.problem and header is not False:
        raise DataError(f"the header cannot be read: {first.problem}", path=path, line=first.line)
    named = has_header([record.fields for record in records]) if header is None else header
    whole = [record for record in records if record.problem is None] or records
    widths = Counter(len(record.fields) for record in whole)
    width = len(first.fields) if named else widths.most_common(1)[0][0]
    columns = name_columns(first.fields if named else [""] * width, path, first.line)
    rows: list[Row] = []
    for record in islice(read_records(text, separator, quoting=quoted), int(named), None):
        row = _make_row(record, columns, bad_rows, path)
        if row is not None:
            rows.append(row)
    return columns, rows, Dialect(separator, quoted, named)


def _make_row(record: Record, columns: list[str], bad_rows: BadRows, path: Path) -> Row | None:
    if record.problem is not None:
        bad_rows.add(record.line, record.problem)
        return None
    if len(record.fields) != len(columns):
        what = "too many" if len(record.fields) > len(columns) else "too few"
        bad_rows.add(
            record.line,
            f"{len(record.fields)} cells, the columns are {len(columns)}: {what}; "
            "quote cells that hold the delimiter",
        )
        return None
    if record.fields == columns:
        bad_rows.add(record.line, "the header once more; files were joined, remove this line")
        return None
    values = dict(zip(columns, record.fields, strict=True))
    problem = row_problem(values)
    if problem is not None:
        bad_rows.add(record.line, problem[1], column=problem[0])
        return None
    return Row(values, path, record.line)


def read_records(text: str, delimiter: str, *, quoting: bool) -> Iterator[Record]:
    """Yield the records of a text, blank lines left out.

    Lines end in LF or CRLF; a lone CR ends a line only where the text has no LF at all. Inside a
    quoted cell, newlines are kept as they are and a doubled quote is one quote. After a record
    with broken quotes, reading goes on at the line after the one where that record started.
    """
    newline = "\n" if "\n" in text else "\r"
    lines = text.split(newline)
    index = 0
    while index < len(lines):
        line = lines[index]
        if not line.strip("\r ") and not (delimiter == " " and line):
            index += 1
        elif not quoting or '"' not in line:
            yield Record(index + 1, line.removesuffix("\r").split(delimiter))
            index += 1
        else:
            record, after = _read_quoted(lines, index, delimiter, newline)
            yield record
            index = after if record.problem is None else index + 1


def _read_quoted(lines: list[str], start: int, delimiter: str, newline: str) -> tuple[Record, int]:
    """Read one record that has quotes; return it and the index of the next line."""
    fields: list[str] = []
    index, position = start, 0
    line = lines[index]
    while True:
        if not line.startswith('"', position):
            end = line.find(delimiter, position)
            if end < 0:
                fields.append(line[position:].removesuffix("\r"))
                return Record(start + 1, fields), index + 1
            fields.append(line[position:end])
            position = end + 1
            continue
        opened = index
        parts: list[str] = []
        position += 1
        while True:
            end = line.find('"', position)
            if end < 0:
                parts += (line[position:], newline)
                index, position = index + 1, 0
                if index == len(lines):
                    problem = f"the quote opened in line {opened + 1} is never closed"
                    return Record(start + 1, fields, problem), index
                line = lines[index]
            elif line.startswith('"', end + 1):
                parts.append(line[position : end + 1])
                position = end + 2
            else:
                parts.append(line[position:end])
                position = end + 1
                break
        fields.append("".join(parts))
        if line[position:] in ("", "\r"):
            return Record(start + 1, fields), index + 1
        if not line.startswith(delimiter, position):
            problem = (
                f"text after the closing quote in line {index + 1}, cell {len(fields)}; "
                "double the quotes that belong to the text"
            )
            return Record(start + 1, fields, problem), index + 1
        position += 1


def sniff_delimiter(text: str) -> str:
    """Return the candidate that splits the first records most evenly; comma if none does."""
    sample = text[:_SNIFF_CHARS]
    if len(text) > _SNIFF_CHARS:
        sample = sample[: max(sample.rfind("\n"), sample.rfind("\r"), 1)]
    best, best_score = ",", (0.0, 0)
    for candidate in DELIMITERS:
        records = islice(read_records(sample, candidate, quoting=candidate != "\t"), _SNIFF_RECORDS)
        widths = Counter(len(record.fields) for record in records if record.problem is None)
        wide = {width: count for width, count in widths.items() if width > 1}
        if not wide:
            continue
        width, count = max(wide.items(), key=lambda item: (item[1], item[0]))
        score = (round(count / sum(widths.values()), 2), width if candidate == "\t" else 0)
        if score > best_score:
            best, best_score = candidate, score
    return best


def _quotes_enclose(text: str, delimiter: str) -> bool:
    """Tell whether quotes enclose cells: always, except in tab files whose quotes do not match."""
    if delimiter != "\t" or '"' not in text:
        return True
    widths: set[int] = set()
    for record in read_records(text, delimiter, quoting=True):
        widths.add(len(record.fields))
        if record.problem is not None or len(widths) > 1:
            return False
    return True
