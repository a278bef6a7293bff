"""Any table with columns for question, choices and answer: CSV, TSV, JSON lines, Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from litebert.data.choices.columns import ChoiceColumns, find_columns
from litebert.data.choices.labelled import has_labelled_choices, read_labelled
from litebert.data.choices.parts import Part, close_part, make_source
from litebert.data.choices.record import (
    LETTERS,
    ChoiceRecord,
    group_of,
    position_of_key,
    record_problem,
)
from litebert.data.jsonl import parse_json
from litebert.data.layouts import find_split_files
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource
from litebert.data.rows import BadRows, Row, row_names
from litebert.data.tables import Table
from litebert.errors import DataError, SettingsError

__all__ = ["AnswerStyle", "ChoiceColumns", "answer_style", "read_choice_table", "read_rows"]

AnswerStyle = Literal["letter", "text", "from 0", "from 1", "none"]
_SHOWN: Final = {
    "letter": "answers are letters",
    "text": "answers are the texts of choices",
    "from 0": "answers are positions from 0",
    "from 1": "answers are positions from 1",
    "none": "there is no answer column",
}


def read_choice_table(
    path: Path, options: ReadOptions, labelled: bool
) -> RecordSource[ChoiceRecord]:
    """Read a table of questions: a file, or a folder with files named train, dev and test.

    What the answers are (letters, texts, positions from 0 or 1) is found out on all parts together.

    Args:
        path: file or folder.
        options: format, encoding, delimiter, policy and columns; the columns that are not told are
            found by their names.
        labelled: whether every question needs an answer.

    Raises:
        DataError: nothing usable, or a bad question under the policy "error".
        SettingsError: a told column is not there.
    """
    files = find_split_files(path) if path.is_dir() else {"train": path}
    if not files:
        raise DataError(
            "no file in this folder is named after a split (train, dev, test); name a file in it",
            path=path,
        )
    tables = {part: options.read(file) for part, file in files.items()}
    nested = {
        part
        for part, table in tables.items()
        if any(has_labelled_choices(row.values) for row in table.rows)
    }
    if options.columns and not options.columns.is_remembered:
        nested = set[str]()
    plain = [table for part, table in tables.items() if part not in nested]
    notes: tuple[str, ...] = ("choices with labels",)
    found, style = ChoiceColumns(), cast("AnswerStyle", "none")
    if plain:
        found = find_columns(plain[0], _told(plain[0], options, labelled))
        for table in plain[1:]:
            _told(table, options, labelled)
        style = answer_style(plain, found)
        notes = (
            f"question {found.question!r}, choices {', '.join(map(repr, found.choices[:4]))}"
            + (", ..." if len(found.choices) > 4 else "")
            + (f", context {found.context!r}" if found.context else ", no context"),
            f"answer {found.answer!r}: {_SHOWN[style]}" if found.answer else _SHOWN[style],
        )

    def read(part: str, file: tuple[str, Table]) -> Part | None:
        role, table = file
        bad_rows = BadRows(table.path, options.on_bad_row)
        bad_rows.skipped.extend(table.skipped)
        if role in nested:
            records = read_labelled(table, bad_rows, labelled)
        else:
            records = read_rows(table, found, style, bad_rows, labelled)
        return close_part(part, records, bad_rows, sha256=table.sha256, labelled=labelled)

    return make_source({part: (part, table) for part, table in tables.items()}, read, notes)


def _told(table: Table, options: ReadOptions, labelled: bool) -> ChoiceColumns:
    """Return the columns that the options name.

    Raises:
        SettingsError: a told column is not there, or one is told for two purposes.
    """
    named = options.columns.within(table, labelled=labelled)
    wanted = [*named.text, *named.choices, *([named.label] if named.label else [])]
    twice = next((name for name in wanted if wanted.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(
            f"column {twice!r} is named twice; question, passage, answer and choices are different ones"
        )
    return ChoiceColumns(
        question=named.text[0] if named.text else None,
        choices=named.choices,
        answer=named.label,
        context=named.text[1] if len(named.text) > 1 else None,
    )


def answer_style(tables: Sequence[Table], columns: ChoiceColumns) -> AnswerStyle:
    """Find out what the answers of a data set are.

    Letters where all are; else texts where all equal a choice; else positions: from 0 where a 0
    occurs, from 1 where one names the choice after the last, else as the choice columns count.
    """
    if columns.answer is None:
        return "none"
    answers: list[tuple[str, list[Any]]] = []
    for table in tables:
        for row in table.rows:
            text = _answer_text(row.values.get(columns.answer))
            choices = _choices_of(row, columns)
            if text and isinstance(choices, list):
                answers.append((text, choices))
    if not answers:
        return "none"
    is_text = all(text in map(_answer_text, choices) for text, choices in answers)
    if all(len(text) == 1 and text.upper() in LETTERS for text, _ in answers):
        is_place = all(position_of_key(text, len(choices)) is not None for text, choices in answers)
        return "text" if is_text and not is_place else "letter"
    numbers = [(_number(text), len(choices)) for text, choices in answers]
    if any(number is None for number, _ in numbers):
        return "text"
    if is_text and any(number is not None and number > count for number, count in numbers):
        return "text"
    if any(number == 0 for number, _ in numbers):
        return "from 0"
    if columns.is_from_one or any(number == count for number, count in numbers):
        return "from 1"
    return "from 0"


def read_rows(
    table: Table,
    columns: ChoiceColumns,
    style: AnswerStyle,
    bad_rows: BadRows,
    labelled: bool,
) -> list[ChoiceRecord]:
    """Return the questions of a table whose columns are known.

    Empty choices at the end of a row are left out, so questions may differ in their number.

    Args:
        table: one question a row.
        columns: found or told.
        style: what the answers are.
        bad_rows: receives every question that cannot be used.
        labelled: whether an answer that names no choice makes a question unusable.
    """
    records: list[ChoiceRecord] = []
    for row, name in zip(table.rows, row_names(table.rows), strict=True):
        record = _read_row(row, name, columns, style, labelled)
        if isinstance(record, tuple):
            bad_rows.add(row.line, record[1], column=record[0], path=row.path)
        else:
            records.append(record)
    return records


def _read_row(
    row: Row, row_name: str, columns: ChoiceColumns, style: AnswerStyle, labelled: bool
) -> ChoiceRecord | tuple[str | None, str]:
    choices = _choices_of(row, columns)
    if isinstance(choices, str):
        return columns.choices[0], choices
    question = row.values.get(columns.question or "")
    context = row.values.get(columns.context) if columns.context else ""
    context = "" if context is None else context
    texts: list[Any] = [
        str(c) if isinstance(c, int | float) and not isinstance(c, bool) else c for c in choices
    ]
    problem = record_problem(context, question, texts)
    if problem is not None:
        where = {"context": columns.context, "question": columns.question}.get(problem[0])
        return where, problem[1]
    answer = row.values.get(columns.answer) if columns.answer else None
    label = _position(answer, texts, style)
    if label is None and labelled and _answer_text(answer):
        return columns.answer, f"answer {answer!r:.60} names none of the {len(texts)} choices"
    name = row.values.get(columns.id) if columns.id else None
    identity = _answer_text(name)[:200] or f"{row.path.stem}-{row_name}"
    return ChoiceRecord(
        context=context,
        question=str(question),
        choices=tuple(texts),
        label=label,
        id=identity,
        group=group_of(context, identity),
        path=row.path,
        line=row.line,
    )


def _choices_of(row: Row, columns: ChoiceColumns) -> list[Any] | str:
    """Return the choices of a row without empty ones at the end, or what is wrong."""
    values: Any = [row.values.get(column) for column in columns.choices]
    if len(values) == 1:
        values = values[0]
        if isinstance(values, str):
            try:
                values = parse_json(values, row.path, line=row.line)
            except DataError:
                return "the choices are no JSON list of texts"
        if not isinstance(values, list):
            return f"expected a list of choices, got {type(values).__name__}"
    choices = list(cast("list[Any]", values))
    while choices and (choices[-1] is None or choices[-1] == ""):
        choices.pop()
    return choices


def _position(answer: Any, choices: Sequence[str], style: AnswerStyle) -> int | None:
    text = _answer_text(answer)
    if not text or style == "none":
        return None
    if style == "letter":
        return position_of_key(text, len(choices)) if text.isalpha() else None
    if style == "text":
        places = [i for i, choice in enumerate(choices) if choice.strip() == text]
        return places[0] if places else None
    number = _number(text)
    position = -1 if number is None else number - (style == "from 1")
    return position if 0 <= position < len(choices) else None


def _answer_text(value: Any) -> str:
    """Return an answer, name or number as text; "" for what is neither."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e9:
        return str(int(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value}" if abs(value) < 1e300 else ""
    return ""


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else None
