"""The text and label columns of a table: by known name first, by content otherwise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from litebert.data.header import ID_NAMES, LABEL_NAMES, PAIR_NAMES, TEXT_NAMES, plain_name
from litebert.data.labels import indicator, label_number, label_text
from litebert.data.tables import Table
from litebert.errors import DataError, SettingsError

_SAMPLE_ROWS = 5000
_MIN_INDICATORS = 2
_LABEL_ENDS = ("label", "class", "category", "sentiment", "intent")


@dataclass(frozen=True, slots=True)
class _Content:
    mean_chars: float
    distinct: int
    filled: int
    numeric: bool
    is_text: bool


def text_columns(
    table: Table, *, told: Sequence[str] | None = None, exclude: Collection[str] = ()
) -> tuple[tuple[str, ...], str]:
    """Return the text column, or the two of a pair, and the reason.

    Args:
        table: labelled or not.
        told: columns the user named.
        exclude: columns that hold labels.

    Raises:
        DataError: no column looks like text.
        SettingsError: `told` names no column, or more than two.
    """
    if told:
        names = (told,) if isinstance(told, str) else tuple(told)
        if len(names) > 2 or len(set(names)) != len(names):
            raise SettingsError(
                f"{len(names)} text columns were told; allowed: one, or two for pairs"
            )
        for name in names:
            _require(table, name)
        return names, f"text column {_join(names)}: as told"
    plain = {plain_name(c): c for c in reversed(table.columns) if c not in exclude}
    content = {column: _content(table, column) for column in plain.values()}
    for first, second in PAIR_NAMES:
        if first in plain and second in plain:
            pair = (plain[first], plain[second])
            if all(content[column].is_text for column in pair):
                return pair, f"text columns {_join(pair)}: a pair by their names"
    for name in TEXT_NAMES:
        if name in plain and content[plain[name]].is_text:
            return (plain[name],), f"text column {plain[name]!r}: by its name"
    found = [
        column
        for column in table.columns
        if column in content
        and content[column].is_text
        and plain_name(column) not in ID_NAMES
        and plain_name(column) not in LABEL_NAMES
    ]
    if not found:
        raise DataError(
            f"no column looks like text (columns: {_join(table.columns)}); "
            "name it with --text-column",
            path=table.path,
        )
    best = max(found, key=lambda column: content[column].mean_chars)
    mean = content[best].mean_chars
    return (best,), f"text column {best!r}: the longest texts, {mean:.0f} characters on average"


def label_columns(
    table: Table, *, told: Sequence[str] = (), exclude: Collection[str] = ()
) -> tuple[tuple[str, ...], str]:
    """Return the label column, or several 0/1 columns, and the reason.

    Args:
        table: a labelled table.
        told: columns the user named.
        exclude: columns that hold texts.

    Raises:
        DataError: no column looks like labels, or a told 0/1 column holds something else.
        SettingsError: `told` names no column, or a text column.
    """
    if told:
        for name in told:
            _require(table, name)
            if name in exclude:
                raise SettingsError(f"column {name!r} cannot hold both texts and labels")
        if len(told) > 1:
            _require_indicators(table, told)
        return tuple(told), f"label column {_join(told)}: as told"
    rest = [column for column in table.columns if column not in exclude]
    plain = {plain_name(column): column for column in reversed(rest)}
    for name in LABEL_NAMES:
        if name in plain:
            return (plain[name],), f"label column {plain[name]!r}: by its name"
    for column in rest:
        if plain_name(column).endswith(_LABEL_ENDS):
            return (column,), f"label column {column!r}: by the end of its name"
    rest = [column for column in rest if plain_name(column) not in ID_NAMES]
    flags = [column for column in rest if _is_indicator(table, column)]
    if len(flags) >= _MIN_INDICATORS:
        return tuple(flags), f"label columns {_join(flags)}: each holds only 0 and 1"
    content = {column: _content(table, column) for column in rest}
    found = [
        column
        for column, facts in content.items()
        if facts.filled and 2 <= facts.distinct <= max(2, facts.filled // 2)
    ]
    found.sort(key=lambda column: (-content[column].filled, content[column].distinct))
    if found:
        distinct = content[found[0]].distinct
        return (found[0],), f"label column {found[0]!r}: only {distinct:,} different values"
    if len(rest) == 1 and content[rest[0]].filled:
        return (rest[0],), f"label column {rest[0]!r}: the only column beside the text"
    raise DataError(
        f"no column looks like labels (columns: {_join(table.columns)}); "
        "name it with --label-column",
        path=table.path,
    )


def _require(table: Table, name: str) -> None:
    if name not in table.columns:
        near = get_close_matches(name, table.columns, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"columns: {_join(table.columns)}"
        raise SettingsError(f"{table.path} has no column {name!r}; {hint}")


def _require_indicators(table: Table, names: Sequence[str]) -> None:
    for row in table.rows:
        for name in names:
            if indicator(row.values.get(name)) is None:
                raise DataError(
                    f"got {row.values.get(name)!r:.80}; each of several label columns must hold "
                    "0 or 1",
                    path=row.path,
                    line=row.line,
                    column=name,
                )


def _is_indicator(table: Table, column: str) -> bool:
    return all(indicator(row.values.get(column)) is not None for row in table.rows)


def _content(table: Table, column: str) -> _Content:
    values: list[Any] = [row.values.get(column) for row in table.rows[:_SAMPLE_ROWS]]
    strings = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    labels = [text for text in map(label_text, values) if text]
    mean = sum(map(len, strings)) / len(strings) if strings else 0.0
    numeric = bool(labels) and all(label_number(text) is not None for text in labels)
    is_text = bool(strings) and not numeric and len(strings) * 2 >= len(values)
    return _Content(mean, len(set(labels)), len(labels), numeric, is_text)


def _join(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (", ..." if len(names) > 8 else "")
