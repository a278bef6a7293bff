"""One multiple-choice question, whatever file it comes from, and what makes it usable."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from litebert.data.rows import text_problem

__all__ = [
    "LETTERS",
    "MAX_CHOICES",
    "MIN_CHOICES",
    "ChoiceRecord",
    "group_of",
    "position_of_key",
    "record_problem",
]

LETTERS: Final = string.ascii_uppercase
"""Names of the choices in order."""
MIN_CHOICES: Final = 2
MAX_CHOICES: Final = len(LETTERS)


@dataclass(frozen=True, slots=True)
class ChoiceRecord:
    """A question with the choices for its answer.

    Attributes:
        context: passage or dialogue that the question is about; may be empty.
        question: the question, or a sentence with a blank `_`.
        choices: 2 to 26 texts, none of them empty.
        label: position of the right choice, from 0; None where it is not known.
        id: name of the question in its file.
        group: article or dialogue that the question belongs to.
        path: file it came from.
        line: 1-based line, or number of the question (RACE) or dialogue (DREAM).
        subset: part of the data set that is scored apart, such as "middle"; may be empty.
    """

    context: str
    question: str
    choices: tuple[str, ...]
    label: int | None
    id: str
    group: str
    path: Path
    line: int
    subset: str = ""


def record_problem(
    context: object, question: object, choices: Sequence[object]
) -> tuple[str, str] | None:
    """Return (part, reason) for the first part of a question that cannot be used, or None."""
    for name, value in (("context", context), ("question", question)):
        problem = _text_problem(value)
        if problem is not None:
            return name, problem
    if not str(question).strip() and not str(context).strip():
        return "question", "question and context are both empty; a question needs words"
    if not MIN_CHOICES <= len(choices) <= MAX_CHOICES:
        return "choices", f"{len(choices)} choices; allowed: {MIN_CHOICES} to {MAX_CHOICES}"
    for number, choice in enumerate(choices):
        problem = _text_problem(choice)
        if problem is None and not str(choice).strip():
            problem = "is empty; give every choice a text, or leave the choice out"
        if problem is not None:
            return "choices", f"choice {LETTERS[number]}: {problem}"
    return None


def position_of_key(key: object, count: int) -> int | None:
    """Return the position, from 0, that an answer key A to Z or 1 to 26 names among `count` choices.

    Returns:
        None for anything else, also for a key beyond the choices.
    """
    text = str(key).strip().upper() if isinstance(key, str | int) else ""
    if len(text) == 1 and text in LETTERS:
        position = LETTERS.index(text)
    elif text.isascii() and text.isdigit() and len(text) <= 2:
        position = int(text) - 1
    else:
        return None
    return position if 0 <= position < count else None


def group_of(context: str, name: str) -> str:
    """Return the group of a question: that of its context, or its own where it has none."""
    if not context.strip():
        return name
    return hashlib.sha256(context.encode("utf-8")).hexdigest()[:16]


def _text_problem(value: object) -> str | None:
    if not isinstance(value, str):
        kind = "null" if value is None else type(value).__name__
        return f"expected a text, got {kind} ({value!r:.60})"
    return text_problem(value)
