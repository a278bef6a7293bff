"""Rows to examples: texts checked, labels turned into names, sets or numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from litebert.data.labels import UNLABELLED, indicator, label_number, label_parts, label_text
from litebert.data.rows import BadRowPolicy, BadRows, Row, SkippedRow
from litebert.data.schema import Schema
from litebert.data.tables import Table
from litebert.errors import SettingsError

Label = str | float | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled (or unlabelled) text or pair.

    Attributes:
        text: the text, or the first of a pair.
        pair: the second text, or None.
        label: class name, number (regression), sorted names (multi-label), or None.
        path: file it came from.
        line: 1-based line in that file.
    """

    text: str
    pair: str | None
    label: Label | None
    path: Path
    line: int


def example_texts(examples: Iterable[Example]) -> list[str]:
    """Return every text of the examples, the two of a pair one after the other."""
    return [text for e in examples for text in (e.text, e.pair) if text is not None]


def make_examples(
    table: Table,
    schema: Schema,
    on_bad_row: BadRowPolicy = "error",
    *,
    labelled: bool = True,
    skipped: list[SkippedRow] | None = None,
) -> list[Example]:
    """Make one example of each row, in file order.

    Args:
        table: training, evaluation or prediction rows.
        schema: columns, kind and the known labels; a label outside them is a bad row.
        on_bad_row: "error" stops at the first bad row, "skip" leaves it out and counts it.
        labelled: False leaves every label None and needs no label column.
        skipped: receives the rows that were left out; default `table.skipped`.

    Raises:
        DataError: empty text, missing, unknown or non-numeric label (policy "error").
        SettingsError: the table lacks a column of the schema.
    """
    wanted = [*schema.text_columns]
    if labelled:
        wanted += schema.label_columns or [schema.label_column or ""]
    for name in wanted:
        if name not in table.columns:
            raise SettingsError(
                f"{table.path} has no column {name!r}, which the training data has; "
                f"columns: {', '.join(table.columns)}"
            )
    bad_rows = BadRows(table.path, on_bad_row)
    known = frozenset(schema.labels)
    examples: list[Example] = []
    for row in table.rows:
        example = _make_example(row, schema, known, bad_rows, labelled=labelled)
        if example is not None:
            examples.append(example)
    (table.skipped if skipped is None else skipped).extend(bad_rows.skipped)
    return examples


def _make_example(
    row: Row, schema: Schema, known: Collection[str], bad_rows: BadRows, *, labelled: bool
) -> Example | None:
    texts: list[str] = []
    for column in schema.text_columns:
        value = row.values.get(column)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            what = (
                "the text is empty"
                if value in (None, "") or isinstance(value, str)
                else (f"got {value!r:.80} where a text should be")
            )
            bad_rows.add(row.line, f"{what}; give a text", column=column, path=row.path)
            return None
        texts.append(value)
    label: Label | None = None
    if labelled:
        label, problem, column = _read_label(row, schema, known)
        if problem is not None:
            bad_rows.add(row.line, problem, column=column, path=row.path)
            return None
    return Example(texts[0], texts[1] if len(texts) > 1 else None, label, row.path, row.line)


def _read_label(
    row: Row, schema: Schema, known: Collection[str]
) -> tuple[Label | None, str | None, str]:
    if schema.label_columns:
        return _read_indicators(row, schema)
    column = schema.label_column or ""
    value: Any = row.values.get(column)
    if schema.kind == "regression":
        number = label_number(value)
        problem = f"got {value!r:.80}; a regression label is a finite number"
        return number, None if number is not None else problem, column
    if schema.kind == "multilabel":
        problem = _list_problem(value)
        if problem is not None:
            return None, problem, column
        parts = label_parts(value, schema.label_separator)
        unknown = next((part for part in parts if part not in known), None)
        return parts, None if unknown is None else _unknown(unknown, known), column
    if isinstance(value, list | tuple | dict):
        return None, f"got {value!r:.80}; this task has one label a row", column
    name = label_text(value)
    if name in UNLABELLED:
        return None, "the label is missing; give one, or remove the row", column
    return name, None if name in known else _unknown(name, known), column


def _list_problem(value: Any) -> str | None:
    """What is wrong with a multi-label cell; an empty one and an empty list are no labels."""
    if value is None:
        return "the label is missing; give [] where there is none, or remove the row"
    items: list[Any] = list(value) if isinstance(value, list | tuple) else [value]
    for item in items:
        if item is None or isinstance(item, list | tuple | dict):
            return f"got {item!r:.80} among the labels; a label is a text or a number"
    return None


def _read_indicators(row: Row, schema: Schema) -> tuple[Label | None, str | None, str]:
    names: list[str] = []
    for column in schema.label_columns:
        flag = indicator(row.values.get(column))
        if flag is None:
            return None, f"got {row.values.get(column)!r:.80}; allowed: 0 and 1", column
        if flag:
            names.append(column)
    return tuple(sorted(names)), None, ""


def _unknown(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    shown = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
    hint = f"did you mean {near[0]!r}?" if near else f"known: {shown}"
    return f"label {name!r:.80} is not among the {len(known)} known ones; {hint}"
