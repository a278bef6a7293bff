"""What a source of examples is, and the registry of readers for formats that need telling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.data.rows import BadRowPolicy
from litebert.data.schema import Schema, infer_schema
from litebert.data.tables import Table, read_table
from litebert.errors import DataError
from litebert.registry import Registry


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
    """

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    quoting: bool | None = None
    on_bad_row: BadRowPolicy = "error"

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
