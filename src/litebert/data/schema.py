"""Which columns hold texts and labels, what kind of task that is, and the reasons in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast, get_args

from litebert.data import columns as find
from litebert.data.kinds import Kind, LabelFacts, infer_kind
from litebert.data.labels import UNLABELLED, is_no_number, label_order, label_parts, label_text
from litebert.data.tables import Table
from litebert.errors import DataError, SettingsError

KINDS: tuple[str, ...] = get_args(Kind)
IMBALANCE_RATIO = 3.0
"""Macro F1 replaces accuracy when the largest class has more than this many times the smallest."""


@dataclass(frozen=True, slots=True)
class Schema:
    """What a table is about.

    Attributes:
        text_columns: one column, or two that form a pair.
        label_column: column of the labels; None when `label_columns` are 0/1 columns.
        kind: binary, multiclass, multilabel or regression.
        labels: class names in index order; empty for regression.
        label_separator: text between labels of one multi-label cell, if there is one.
        metric: name of the main metric, as the tasks spell it.
        reasons: why all this, in words.
        label_columns: the 0/1 columns of a multi-label table, else empty.
    """

    text_columns: tuple[str, ...]
    label_column: str | None
    kind: Kind
    labels: tuple[str, ...]
    label_separator: str | None = None
    metric: str = "accuracy"
    reasons: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()

    @property
    def is_pair(self) -> bool:
        """Whether each example has two texts."""
        return len(self.text_columns) == 2

    def replace(self, **changes: Any) -> Schema:
        """Return a copy with some attributes replaced."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able mapping that `from_json` turns back into an equal schema."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, mapping: dict[str, Any]) -> Schema:
        """Rebuild a schema from `to_json`.

        Raises:
            DataError: missing or unknown keys.
        """
        try:
            values: dict[str, Any] = {
                k: tuple(cast(list[str], v)) if isinstance(v, list) else v
                for k, v in mapping.items()
            }
            return cls(**values)
        except TypeError as error:
            raise DataError(f"not a saved schema: {error}") from error


def infer_schema(
    table: Table,
    *,
    text_columns: Sequence[str] | None = None,
    label_column: str | Sequence[str] | None = None,
    kind: str | None = None,
    labels: Sequence[str] | None = None,
    label_separator: str | None = None,
    metric: str | None = None,
) -> Schema:
    """Find out columns, task kind, labels and metric; whatever is told is taken as told.

    Args:
        table: the training table.
        text_columns: one or two columns.
        label_column: one column, or several 0/1 columns (multi-label).
        kind: binary, multiclass, multilabel, regression, or pairs (kind found out, two texts).
        labels: class names in the wanted index order.
        label_separator: text between the labels of one cell (multi-label).
        metric: name of the main metric, as the tasks spell it.

    Raises:
        DataError: no text or label column, one label only, or labels that are all unique.
        SettingsError: an argument names no column or kind.
    """
    if kind is not None and kind not in (*KINDS, "pairs"):
        raise SettingsError(f"kind {kind!r}; allowed: {', '.join(KINDS)}, pairs")
    told_labels: tuple[str, ...] = (
        (label_column,) if isinstance(label_column, str) else tuple(label_column or ())
    )
    if kind == "pairs" and text_columns is not None and len(text_columns) != 2:
        raise SettingsError("kind 'pairs' needs two text columns")
    texts, text_reason = find.text_columns(table, told=text_columns, exclude=told_labels)
    if kind == "pairs" and len(texts) != 2:
        raise DataError(
            f"found one text column ({texts[0]!r}), a pair needs two; name them with "
            "--text-column twice",
            path=table.path,
        )
    label_names, label_reason = find.label_columns(table, told=told_labels, exclude=texts)
    reasons = [*table.notes, text_reason, label_reason]
    told_kind = None if kind in (None, "pairs") else cast(Kind, kind)
    first, *more = label_names
    if more and told_kind not in (None, "multilabel"):
        raise SettingsError(f"several label columns make a multilabel task, not {told_kind}")
    schema = (
        _from_indicators(texts, label_names)
        if more
        else _from_column(table, texts, first, told_kind, label_separator, labels)
    )
    chosen, metric_reason = _choose_metric(table, schema, metric)
    return schema.replace(metric=chosen, reasons=(*reasons, *schema.reasons, metric_reason))


def _from_indicators(texts: tuple[str, ...], names: tuple[str, ...]) -> Schema:
    reason = f"{len(names)} columns hold only 0 and 1 -> multilabel"
    return Schema(texts, None, "multilabel", names, None, "", (reason,), names)


def _from_column(
    table: Table,
    texts: tuple[str, ...],
    column: str,
    kind: Kind | None,
    separator: str | None,
    labels: Sequence[str] | None,
) -> Schema:
    values = [row.values.get(column) for row in table.rows]
    facts = LabelFacts.of(values)
    if facts.num_labelled == 0:
        raise DataError(
            "no row has a label; name another column with --label-column",
            path=table.path,
            column=column,
        )
    found, reason, found_separator = infer_kind(facts, kind=kind, separator=separator)
    separator = separator or found_separator
    names = tuple(labels) if labels else _label_names(values, found, separator)
    if not labels and facts.is_numeric:
        names = tuple(name for name in names if not is_no_number(name))
    if found == "regression":
        names = ()
    elif len(names) < 2:
        raise DataError(
            f"all rows have the one label {names[0]!r}; nothing can be learnt from one label, "
            "add rows of another class or name another column with --label-column"
            if names
            else "no row has any label; name another column with --label-column",
            path=table.path,
            column=column,
        )
    elif kind is None and found == "multiclass":
        _refuse_unique(table, column, len(names), facts.num_labelled)
    if found == "multiclass" and len(names) == 2:
        found = "binary"
    if found == "binary" and kind is None and len(names) > 2:
        found = "multiclass"
    if found == "binary" and len(names) > 2:
        raise SettingsError(
            f"kind 'binary' was told, but column {column!r} has {len(names)} labels; "
            "tell kind 'multiclass'"
        )
    text = f"label column {column!r}: {reason}"
    return Schema(texts, column, found, names, separator, "", (text,))


def _refuse_unique(table: Table, column: str, num_labels: int, num_rows: int) -> None:
    if num_labels == num_rows or (num_rows >= 50 and num_labels > num_rows / 2):
        raise DataError(
            f"{num_labels:,} different labels in {num_rows:,} rows: this looks like an id or a "
            "text, not a class; name the label column with --label-column, or tell the kind",
            path=table.path,
            column=column,
        )


def _label_names(values: Sequence[Any], kind: Kind, separator: str | None) -> tuple[str, ...]:
    names: set[str] = set()
    for value in values:
        if kind == "multilabel":
            names.update(label_parts(value, separator))
        elif kind != "regression":
            text = label_text(value)
            names.update(() if text in UNLABELLED else (text,))
    return label_order(names)


def _choose_metric(table: Table, schema: Schema, told: str | None) -> tuple[str, str]:
    if told is not None:
        return told, f"metric {told}: as told"
    if schema.kind == "regression":
        return "pearson_spearman", "metric pearson_spearman: mean of both correlations"
    if schema.kind == "multilabel":
        return "f1_micro", "metric f1_micro: F1 over all label decisions of all rows"
    counts = dict.fromkeys(schema.labels, 0)
    for row in table.rows:
        name = label_text(row.values.get(schema.label_column or ""))
        if name in counts:
            counts[name] += 1
    seen = [count for count in counts.values() if count]
    largest, smallest = max(seen, default=1), min(seen, default=1)
    if largest > IMBALANCE_RATIO * smallest:
        return "f1_macro", (
            f"metric f1_macro: the largest class has {largest:,} rows, the smallest {smallest:,} "
            f"(more than {IMBALANCE_RATIO:g} times)"
        )
    return "accuracy", f"metric accuracy: classes have {smallest:,} to {largest:,} rows"
