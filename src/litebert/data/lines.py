"""Text files read line by line: plain lines, lines with a label, and parallel files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from litebert.data.compressed import peek_bytes, read_bytes
from litebert.data.encodings import decode_text
from litebert.data.readers import ReadOptions
from litebert.data.rows import BadRows, Row, row_problem
from litebert.data.tables import Table
from litebert.errors import DataError

_FASTTEXT = re.compile(r"(?:^|(?<=\s))__label__(\S+)\s*")
Split = Callable[[str], dict[str, Any] | str]
"""Turns one line into named values, or says what is wrong with it."""


def read_lines(path: Path, encoding: str | None = None) -> tuple[list[str], str, str]:
    """Return the lines of a text file without line ends, the encoding, and the file's sha256.

    Raises:
        DataError: the file cannot be read or decoded.
    """
    content = read_bytes(path)
    text, name = decode_text(content.data, encoding, path)
    newline = "\n" if "\n" in text else "\r"
    lines = [line.removesuffix("\r") for line in text.split(newline)]
    if lines and not lines[-1]:
        lines.pop()
    return lines, name, content.sha256


def read_line_table(path: Path, options: ReadOptions, name: str, split: Split) -> Table:
    """Read a file of one example a line; blank lines are no examples.

    Args:
        path: text file.
        options: encoding and policy.
        name: format name for the table.
        split: makes the values of one line.

    Raises:
        DataError: no usable line, or a bad one under the policy "error".
    """
    lines, encoding, digest = read_lines(path, options.encoding)
    bad_rows = BadRows(path, options.on_bad_row)
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            _add(rows, split(line), number, path, bad_rows)
    return line_table(rows, bad_rows, path, name, encoding, digest)


def read_parallel(text_path: Path, label_path: Path, options: ReadOptions, name: str) -> Table:
    """Read texts and labels from two files, line by line, as columns `text` and `label`.

    Raises:
        DataError: the files differ in their number of lines, or a bad row.
    """
    texts, encoding, digest = read_lines(text_path, options.encoding)
    labels, _, label_digest = read_lines(label_path, options.encoding)
    if len(texts) != len(labels):
        raise DataError(
            f"{len(texts):,} lines, but {label_path.name} has {len(labels):,}; "
            "line n of one must belong to line n of the other",
            path=text_path,
            line=min(len(texts), len(labels)) + 1,
        )
    bad_rows = BadRows(text_path, options.on_bad_row)
    rows: list[Row] = []
    for number, (text, label) in enumerate(zip(texts, labels, strict=True), start=1):
        _add(rows, {"text": text.strip(), "label": label.strip()}, number, text_path, bad_rows)
    joined = sha256((digest + label_digest).encode()).hexdigest()
    return line_table(rows, bad_rows, text_path, name, encoding, joined)


def read_fasttext(path: Path, options: ReadOptions) -> Table:
    """Read `__label__x __label__y text` lines; the label column holds lists if any line has two.

    Raises:
        DataError: a line without label or text under the policy "error".
    """
    table = read_line_table(path, options, "fasttext", _split_fasttext)
    if all(len(row.values["label"]) == 1 for row in table.rows):
        for row in table.rows:
            row.values["label"] = row.values["label"][0]
    return table


def is_fasttext(path: Path) -> bool:
    """Tell whether a file starts with a fastText label (compressed files are looked into)."""
    try:
        start = peek_bytes(path)
    except DataError:
        return False
    return start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"__label__")


def _split_fasttext(line: str) -> dict[str, Any] | str:
    labels = _FASTTEXT.findall(line)
    text = _FASTTEXT.sub("", line).strip()
    if not labels:
        return "the line has no __label__; every line needs one"
    if not text:
        return "the line has a label but no text"
    return {"label": labels, "text": text}


def line_table(
    rows: list[Row], bad_rows: BadRows, path: Path, name: str, encoding: str, digest: str
) -> Table:
    """Return the table of rows that were read by hand.

    Raises:
        DataError: no rows.
    """
    if not rows:
        first = f"; the first: {bad_rows.skipped[0].reason}" if bad_rows.skipped else ""
        raise DataError(
            f"no usable rows ({len(bad_rows.skipped):,} skipped{first})",
            path=path,
            line=bad_rows.skipped[0].line if bad_rows.skipped else None,
        )
    columns: Sequence[str] = list(rows[0].values)
    return Table(path, list(columns), rows, bad_rows.skipped, name, encoding, digest)


def _add(
    rows: list[Row], values: dict[str, Any] | str, number: int, path: Path, bad_rows: BadRows
) -> None:
    if isinstance(values, str):
        bad_rows.add(number, values)
        return
    problem = row_problem(values)
    if problem is not None:
        bad_rows.add(number, problem[1], column=problem[0])
        return
    rows.append(Row(values, path, number))
