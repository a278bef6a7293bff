"""Which columns of a table hold the question, its choices, the answer, the context and the id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from litebert.data.choices.record import LETTERS, MAX_CHOICES, MIN_CHOICES
from litebert.data.header import plain_name
from litebert.data.tables import Table
from litebert.errors import DataError, SettingsError

__all__ = ["ChoiceColumns", "find_columns"]

QUESTIONS: Final = (
    "question", "stem", "questionstem", "questiontext", "query", "prompt", "goal", "sentence",
    "sent", "startphrase", "ctx", "text", "problem",
)  # fmt: skip
CONTEXTS: Final = (
    "context", "article", "passage", "paragraph", "story", "dialogue", "support", "document",
    "premise", "background",
)  # fmt: skip
LISTS: Final = ("choices", "options", "endings", "answers", "candidates", "alternatives")
ANSWERS: Final = (
    "answerkey", "answer", "label", "correctanswer", "correct", "gold", "goldlabel", "target",
    "correctoption", "answerindex", "answeridx", "answerid", "key", "cop",
)  # fmt: skip
IDS: Final = ("id", "qid", "questionid", "exampleid", "uid", "guid", "index")
_ITEM: Final = re.compile(
    r"(choice|option|ending|answer|solution|sol|alternative|candidate|opt|op|hypothesis|)"
    r"[ _-]?(\d{1,2}|[a-z])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ChoiceColumns:
    """The columns of a table of questions; None and () are found out by `find_columns`.

    Attributes:
        question: column of the question.
        choices: one column of lists, or a column for each choice, in order.
        answer: column of the right choice; None where there is none.
        context: column of the passage, if any.
        id: column of names, if any.
        is_from_one: whether the choice columns are numbered from 1.
    """

    question: str | None = None
    choices: tuple[str, ...] = ()
    answer: str | None = None
    context: str | None = None
    id: str | None = None
    is_from_one: bool = False


def find_columns(table: Table, told: ChoiceColumns | None = None) -> ChoiceColumns:
    """Return the columns of a table: as told, else by their names.

    Raises:
        DataError: no column looks like choices or like a question.
        SettingsError: a told column is not there.
    """
    told = told or ChoiceColumns()
    for name in (told.question, *told.choices, told.answer, told.context, told.id):
        if name is not None:
            _require(table, name)
    choices, is_from_one = (told.choices, told.is_from_one) if told.choices else _choices(table)
    if not choices:
        raise DataError(
            f"no columns look like choices (columns: {_join(table.columns)}); name them choices "
            "(one list), or choice0, choice1, ... or A, B, ... (one each), or say them: --choice-column",
            path=table.path,
            line=1,
        )
    taken = set(choices)
    question = told.question or _named(table, QUESTIONS, taken)
    if question is None:
        raise DataError(
            f"no column looks like a question (columns: {_join(table.columns)}); name it question, or say "
            "it: --text-column",
            path=table.path,
            line=1,
        )
    taken.add(question)
    context = told.context or _named(table, CONTEXTS, taken)
    answer = told.answer or _named(table, ANSWERS, taken | {context or question})
    identity = told.id or _named(table, IDS, taken | {answer or question})
    return replace(
        told,
        question=question, choices=choices, answer=answer, context=context, id=identity,
        is_from_one=is_from_one,
    )  # fmt: skip


def _choices(table: Table) -> tuple[tuple[str, ...], bool]:
    """Return the column of lists, or numbered columns and whether they count from 1."""
    plain = {plain_name(column): column for column in reversed(table.columns)}
    for name in LISTS:
        column = plain.get(name)
        if column is not None and _holds_lists(row.values.get(column) for row in table.rows[:100]):
            return (column,), False
    families: dict[str, dict[int, str]] = {}
    for column in table.columns:
        match = _ITEM.fullmatch(column.strip())
        if match is None or (not match[1] and match[2].isdigit()):
            continue
        is_letter = not match[2].isdigit()
        place = LETTERS.index(match[2].upper()) if is_letter else int(match[2])
        families.setdefault(f"{match[1].lower()} {is_letter}", {}).setdefault(place, column)
    best: tuple[tuple[str, ...], bool] = (), False
    for family, found in families.items():
        for first in (0, 1):
            run = [found[place] for place in range(first, first + MAX_CHOICES) if place in found]
            is_whole = all(place in found for place in range(first, first + len(run)))
            enough = is_whole and len(run) >= max(MIN_CHOICES, len(best[0]) + 1)
            if enough and first in found and not (first and 0 in found):
                best = tuple(run), first == 1 and family.endswith("False")
    return best


def _holds_lists(values: Any) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, list) or (isinstance(value, str) and value.lstrip().startswith("["))
        for value in known
    )


def _named(table: Table, names: Sequence[str], taken: set[str]) -> str | None:
    plain = {
        plain_name(column): column for column in reversed(table.columns) if column not in taken
    }
    return next((plain[name] for name in names if name in plain), None)


def _require(table: Table, name: str) -> None:
    if name not in table.columns:
        near = get_close_matches(name, table.columns, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"columns: {_join(table.columns)}"
        raise SettingsError(f"{table.path} has no column {name!r}; {hint}")


def _join(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:12]) + (", ..." if len(names) > 12 else "")
