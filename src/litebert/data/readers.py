"""What a source of examples is, and the registry of readers for formats that need telling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from litebert.data.rows import BadRowPolicy
from litebert.data.schema import Schema, infer_schema
from litebert.data.tables import Table, read_table
from litebert.errors import DataError, SettingsError
from litebert.registry import Registry


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """Columns that were named by the user, for tables of records; what is not named is found.

    Attributes:
        text: question and passage of a table of choices; the two texts of a table of pairs.
        label: the answer, or the score.
        choices: one column of lists, or one column for each choice.
        is_remembered: they were named in training. Another file may lack them; then its own are found.
    """

    text: tuple[str, ...] = ()
    label: str | None = None
    choices: tuple[str, ...] = ()
    is_remembered: bool = False

    def __bool__(self) -> bool:
        return bool(self.text or self.label or self.choices)

    def within(self, table: Table, *, labelled: bool) -> NamedColumns:
        """Return those that count for a table; a file without answers needs no column for them.

        Raises:
            SettingsError: the table lacks a column, and it was not remembered.
        """
        has_label = self.label in table.columns
        named = self if labelled or has_label else replace(self, label=None)
        wanted = (*named.text, *([named.label] if named.label else []), *named.choices)
        missing = next((name for name in wanted if name not in table.columns), None)
        if missing is None:
            return named
        if self.is_remembered:
            return NamedColumns()
        near = get_close_matches(missing, table.columns, n=1)
        shown = ", ".join(map(repr, table.columns[:12])) + (", ..." * (len(table.columns) > 12))
        hint = f"did you mean {near[0]!r}?" if near else f"columns: {shown}"
        raise SettingsError(f"{table.path} has no column {missing!r}; {hint}")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user told about files; None is found out (see `read_table`).

    Attributes:
        format: csv, tsv, jsonl, json or parquet.
        encoding: codec of text files.
        delimiter: one character between cells.
        header: whether the first record names the columns.
        quoting: whether double quotes enclose cells.
        on_bad_row: "error" or "skip".
        columns: names of columns, for tables of records.
    """

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    quoting: bool | None = None
    on_bad_row: BadRowPolicy = "error"
    columns: NamedColumns = NamedColumns()

    def read(self, path: Path) -> Table:
        """Read one table file.

        Raises:
            DataError: the file or a record cannot be used.
        """
        return read_table(
            path,
            format=self.format,
            encoding=self.encoding,
            delimiter=self.delimiter,
            header=self.header,
            quoting=self.quoting,
            on_bad_row=self.on_bad_row,
        )


@dataclass(frozen=True, slots=True)
class Source:
    """The tables of one data set, and what its reader knows about them.

    Attributes:
        train: training rows, or the only rows there are.
        eval: rows to choose by, if the source has them.
        test: rows to report on, if the source has them (they may lack labels).
        task: name of the reader, None for plain tables.
        text_columns: one or two text columns, or None to infer.
        label_column: label column, or None to infer.
        kind: kind of task, or None to infer.
        metric: main metric, or None to choose.
        labels: class names in index order, or None to collect.
        others: further labelled rows to report on, by a name that goes behind that of the score.
        is_labelled: False when `train` has no labels (prediction only).
        reasons: what the reader found, in words.
    """

    train: Table
    eval: Table | None = None
    test: Table | None = None
    task: str | None = None
    text_columns: tuple[str, ...] | None = None
    label_column: str | None = None
    kind: str | None = None
    metric: str | None = None
    labels: tuple[str, ...] | None = None
    others: tuple[tuple[str, Table], ...] = ()
    is_labelled: bool = True
    reasons: tuple[str, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that exist: train, eval, test."""
        return tuple(table for table in (self.train, self.eval, self.test) if table is not None)

    def schema(self, **told: Any) -> Schema:
        """Return the schema of the training table; `told` goes over what the reader knows.

        Args:
            told: keyword arguments of `infer_schema`; None means not told.

        Raises:
            DataError: the source has no labels, or its table gives no schema.
            SettingsError: something told does not fit.
        """
        if not self.is_labelled:
            raise DataError(
                f"{self.task or 'this source'} has no labels; it can be predicted, not trained on",
                path=self.train.path,
            )
        known: dict[str, Any] = {
            "text_columns": self.text_columns,
            "label_column": self.label_column,
            "kind": self.kind,
            "metric": self.metric,
            "labels": self.labels,
        }
        known.update({name: value for name, value in told.items() if value is not None})
        if told.get("label_column") is not None and told.get("kind") is None:
            known.update(kind=None, metric=told.get("metric"), labels=told.get("labels"))
        schema = infer_schema(self.train, **known)
        return schema.replace(reasons=(*self.reasons, *schema.reasons))


Reader = Callable[[Path, ReadOptions], Source]

READERS: Registry[Reader] = Registry("task")
"""Readers by the name that `--task` takes."""
