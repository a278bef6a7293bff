"""A question whose choices have labels: the JSON layouts of ARC and CommonsenseQA.

Published: `question: {stem, choices: [{label, text}]}, answerKey`. As `datasets` stores it:
`question, choices: {label: [...], text: [...]}, answerKey`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from litebert.data.choices.record import (
    ChoiceRecord,
    group_of,
    position_of_key,
    record_problem,
)
from litebert.data.rows import BadRows, Row, row_names
from litebert.data.tables import Table

__all__ = ["has_labelled_choices", "read_labelled"]

_CONTEXTS = ("context", "passage", "article", "para", "support")


def has_labelled_choices(values: Mapping[str, Any]) -> bool:
    """Tell whether a record is in one of the two layouts."""
    question, choices = values.get("question"), values.get("choices")
    return (isinstance(question, dict) and "stem" in question) or (
        isinstance(choices, dict) and {"label", "text"} <= set(cast("dict[str, Any]", choices))
    )


def read_labelled(
    table: Table, bad_rows: BadRows, labelled: bool, *, subset: str = ""
) -> list[ChoiceRecord]:
    """Return the questions of a table of JSON records.

    Args:
        table: one question a row.
        bad_rows: receives every question that cannot be used.
        labelled: whether an answer key that names no choice makes a question unusable.
        subset: part of the data set.
    """
    records: list[ChoiceRecord] = []
    for row, name in zip(table.rows, row_names(table.rows), strict=True):
        record = _read_row(row, name, labelled, subset)
        if isinstance(record, str):
            bad_rows.add(row.line, record, path=row.path)
        else:
            records.append(record)
    return records


def _read_row(row: Row, row_name: str, labelled: bool, subset: str) -> ChoiceRecord | str:
    question, choices = row.values.get("question"), row.values.get("choices")
    if isinstance(question, dict):
        nested = cast("dict[str, Any]", question)
        question, choices = nested.get("stem"), nested.get("choices", choices)
    pairs = _pairs(choices)
    if pairs is None:
        return "choices must hold a label and a text each: {label: [...], text: [...]} or a list of {label, text}"
    context = next((row.values[key] for key in _CONTEXTS if row.values.get(key)), "")
    texts = [text for _, text in pairs]
    problem = record_problem(context, question, texts)
    if problem is not None:
        return f"{problem[0]}: {problem[1]}"
    labels = [str(label).strip().casefold() for label, _ in pairs]
    key = row.values.get("answerKey")
    name = row.values.get("id")
    label = _position(key, labels)
    if label is None and labelled and key not in (None, ""):
        return f"answer key {key!r:.60} names no choice; there are {', '.join(labels)}"
    given = str(name)[:200] if isinstance(name, str | int) else ""
    identity = given or f"{Path(row.path.name).stem}-{row_name}"
    return ChoiceRecord(
        context=str(context),
        question=str(question),
        choices=tuple(map(str, texts)),
        label=label,
        id=identity,
        group=group_of(str(context), identity),
        path=row.path,
        line=row.line,
        subset=subset,
    )


def _position(key: Any, labels: list[str]) -> int | None:
    """Return the choice that a key names: by its label, else A for 1 and the other way round."""
    plain = str(key).strip().casefold()
    if plain in labels:
        return labels.index(plain)
    return position_of_key(key, len(labels))


def _pairs(choices: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(choices, dict):
        table = cast("dict[str, Any]", choices)
        labels, texts = table.get("label"), table.get("text")
        if not isinstance(labels, list) or not isinstance(texts, list):
            return None
        known, said = cast("list[Any]", labels), cast("list[Any]", texts)
        return list(zip(known, said, strict=True)) if len(known) == len(said) else None
    if isinstance(choices, list):
        items = cast("list[Any]", choices)
        if all(isinstance(item, dict) for item in items):
            return [(item.get("label"), item.get("text")) for item in items]
    return None
