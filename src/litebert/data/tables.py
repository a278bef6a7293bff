"""A file of records to a `Table`, whatever its format, compression, encoding or delimiter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast, get_args

from litebert.data.columnar import read_parquet
from litebert.data.compressed import MAX_BYTES, FileBytes, read_bytes
from litebert.data.delimited import Dialect, read_delimited
from litebert.data.encodings import decode_text
from litebert.data.jsonl import read_json
from litebert.data.rows import BadRowPolicy, BadRows, Row, SkippedRow
from litebert.errors import DataError, SettingsError

__all__ = ["BadRowPolicy", "Format", "Row", "SkippedRow", "Table", "read_table"]

Format = Literal["csv", "tsv", "jsonl", "json", "parquet"]
_SUFFIXES: dict[str, Format] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "json", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """Records with named columns.

    Attributes:
        path: file (or folder) they came from.
        columns: names in file order.
        rows: usable records in file order.
        skipped: records left out under the policy "skip", in file order.
        format: csv, tsv, jsonl, json, parquet, or the name of a special reader.
        encoding: codec the text was read with (empty for Parquet).
        sha256: hex digest of the file on disk.
        notes: what was found out about the file, in words.
    """

    path: Path
    columns: list[str]
    rows: list[Row]
    skipped: list[SkippedRow] = field(default_factory=list[SkippedRow])
    format: str = "csv"
    encoding: str = "utf-8"
    sha256: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def with_columns(self, names: Sequence[str]) -> Table:
        """Return the table with other column names, in order.

        Raises:
            DataError: not as many names as columns.
        """
        if len(names) != len(self.columns):
            raise DataError(
                f"{len(self.columns)} columns; expected {len(names)}: {', '.join(names)}",
                path=self.path,
                line=1,
            )
        rows = [
            replace(row, values=dict(zip(names, row.values.values(), strict=True)))
            for row in self.rows
        ]
        return replace(self, columns=list(names), rows=rows)


def read_table(
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002 - the word users type
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    on_bad_row: BadRowPolicy = "error",
    max_bytes: int = MAX_BYTES,
) -> Table:
    """Read a CSV, TSV, JSON lines, JSON or Parquet file, compressed (gz, zst, xz, bz2) or not.

    Whatever is not told is found out from the content.

    Args:
        path: a regular file.
        format: csv, tsv, jsonl, json or parquet.
        encoding: Python codec name of a text file.
        delimiter: one character between the cells of a csv or tsv.
        header: whether the first record of a csv or tsv names the columns.
        quoting: whether double quotes enclose cells of a csv or tsv.
        on_bad_row: "error" stops at the first record that cannot be used; "skip" counts it.
        max_bytes: most bytes after decompression.

    Raises:
        DataError: the file or one of its records cannot be used; names file, line and column.
        SettingsError: an argument is wrong.
    """
    path = Path(path)
    if format is not None and format not in get_args(Format):
        raise SettingsError(f"format {format!r}; allowed: {', '.join(get_args(Format))}")
    bad_rows = BadRows(path, on_bad_row)
    content = read_bytes(path, max_bytes=max_bytes)
    chosen = cast(Format, format) if format else _guess_format(content)
    notes: list[str] = []
    name = ""
    if chosen == "parquet":
        columns, rows = read_parquet(content.data, bad_rows, path, max_bytes=max_bytes)
    else:
        text, name = decode_text(content.data, encoding, path)
        if chosen in ("json", "jsonl"):
            known = {"jsonl": True, "json": None}[chosen]
            columns, rows = read_json(text, bad_rows, path, lines=known)
        else:
            columns, rows, dialect = read_delimited(
                text,
                bad_rows,
                path,
                delimiter=delimiter or ("\t" if chosen == "tsv" and "\t" in text else None),
                quoting=quoting,
                header=header,
            )
            chosen = "tsv" if dialect.delimiter == "\t" else "csv"
            notes.append(_describe(dialect))
    _require_rows(rows, bad_rows, path)
    return Table(path, columns, rows, bad_rows.skipped, chosen, name, content.sha256, tuple(notes))


def _guess_format(content: FileBytes) -> Format:
    if content.data.startswith(b"PAR1"):
        return "parquet"
    named = _SUFFIXES.get(Path(content.name).suffix)
    if named is not None:
        return named
    start = content.data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    return "json" if start.startswith((b"{", b"[{", b"[\n", b"[\r", b"[ ")) else "csv"


def _describe(dialect: Dialect) -> str:
    names = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
    header = "the first line names the columns" if dialect.header else "no header line"
    quotes = "" if dialect.quoting else ", quotes are ordinary characters"
    between = names.get(dialect.delimiter, repr(dialect.delimiter))
    return f"cells separated by {between}, {header}{quotes}"


def _require_rows(rows: list[Row], bad_rows: BadRows, path: Path) -> None:
    if rows:
        return
    skipped = bad_rows.skipped
    if skipped:
        raise DataError(
            f"all {len(skipped):,} rows are unusable; the first: {skipped[0].reason}",
            path=path,
            line=skipped[0].line,
        )
    raise DataError("the file has a header but no rows; give a file with rows", path=path)
