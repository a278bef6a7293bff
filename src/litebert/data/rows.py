"""One record with the place it came from, and the policy for records that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from litebert.errors import DataError, SettingsError

BadRowPolicy = Literal["error", "skip"]
"""What to do with a record that cannot be used: stop with an error, or skip and count it."""

MAX_CELL_CHARS = 10_000_000
"""Longest cell accepted, in characters; beyond it, an unclosed quote is the usual cause."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record.

    Attributes:
        values: column name -> value; `str` from text formats, any JSON type from the others.
        path: file the record came from.
        line: 1-based line where the record starts (record number in Parquet and JSON objects).
    """

    values: dict[str, Any]
    path: Path
    line: int


def row_names(rows: Sequence[Row]) -> list[str]:
    """Return a name for each record of a file: its line, with its place there if several share it.

    Records of a JSON list that stands in one line would otherwise be one record by their names.
    """
    sizes = Counter(row.line for row in rows)
    seen = Counter[int]()
    names: list[str] = []
    for row in rows:
        seen[row.line] += 1
        names.append(str(row.line) if sizes[row.line] == 1 else f"{row.line}.{seen[row.line]}")
    return names


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A record that was left out, and why.

    Attributes:
        path: file the record is in.
        line: 1-based line where the record starts.
        reason: what is wrong with it.
    """

    path: Path
    line: int
    reason: str


class BadRowError(DataError):
    """A record cannot be used, and the policy "skip" would have left it out."""


class BadRows:
    """Applies one policy to every record that cannot be used, so that none is lost silently."""

    def __init__(self, path: Path, policy: BadRowPolicy = "error") -> None:
        if policy not in ("error", "skip"):
            raise SettingsError(f"on_bad_row is {policy!r}; allowed: 'error', 'skip'")
        self.path = path
        self.policy = policy
        self.skipped: list[SkippedRow] = []

    def add(
        self, line: int, reason: str, *, column: str | None = None, path: Path | None = None
    ) -> None:
        """Note one bad record.

        Args:
            line: 1-based line where the record starts.
            reason: what is wrong and what to do about it.
            column: column to blame, if one is.
            path: file of the record when it is not the reader's own.

        Raises:
            BadRowError: the policy is "error".
        """
        where = path or self.path
        if self.policy == "error":
            raise BadRowError(reason, path=where, line=line, column=column)
        self.skipped.append(
            SkippedRow(where, line, f"column {column!r}: {reason}" if column else reason)
        )


def text_problem(text: str) -> str | None:
    """Say why a cell cannot be used as text, or None if it can."""
    if len(text) > MAX_CELL_CHARS:
        return (
            f"cell of {len(text):,} characters, at most {MAX_CELL_CHARS:,} are allowed; "
            "look for an unclosed quote"
        )
    if "\x00" in text:
        return "cell holds a NUL character; remove it"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        if 0xDC80 <= code <= 0xDCFF:
            return f"byte 0x{code - 0xDC00:02X} is not UTF-8; fix the byte or tell the encoding"
        return f"cell holds the lone surrogate U+{code:04X}; remove it"
    return None


def row_problem(values: dict[str, Any]) -> tuple[str, str] | None:
    """Return (column, reason) for the first unusable text cell of a record, or None."""
    for column, value in values.items():
        items = value if isinstance(value, list) else (value,)
        for item in items:  # pyright: ignore[reportUnknownVariableType]
            reason = text_problem(item) if isinstance(item, str) else None
            if reason is not None:
                return column, reason
    return None
