"""Parts of questions about a passage: an answer with its place, and an earlier turn of a dialogue."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

from litebert.data.rows import text_problem

__all__ = ["MAX_NUMBER", "AnswerSpan", "Turn", "answer_pairs", "locate", "read_answers", "text_of"]

MAX_NUMBER: Final = 1 << 40
"""Largest whole number that is taken for an offset or an id."""


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """One reference answer.

    Attributes:
        text: as the file has it; what predictions are compared with.
        start: first character in the passage, -1 if it does not occur there.
        end: character behind the last one, -1 likewise.
    """

    text: str
    start: int
    end: int

    @property
    def is_located(self) -> bool:
        """Whether the passage holds the answer."""
        return self.start >= 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that was asked before, and its answer (empty where it is not known)."""

    question: str
    answer: str


def locate(context: str, text: str, start: int) -> AnswerSpan:
    """Find an answer in its passage: where it is said to be, else the nearest occurrence.

    Where the words are there but not the same white space between them, that is taken too.

    Args:
        context: the passage.
        text: the answer.
        start: character where it should begin; negative if unknown.
    """
    if not text.strip():
        return AnswerSpan(text, -1, -1)
    if start >= 0 and context.startswith(text, start):
        return AnswerSpan(text, start, start + len(text))
    start = min(max(start, 0), len(context))
    before, after = context.rfind(text, 0, start + len(text)), context.find(text, start)
    found = [place for place in (before, after) if place >= 0]
    if found:
        place = min(found, key=lambda position: abs(position - start))
        return AnswerSpan(text, place, place + len(text))
    words = r"\s+".join(map(re.escape, text.split()))
    nearest = min(
        re.finditer(words, context), key=lambda match: abs(match.start() - start), default=None
    )
    return AnswerSpan(text, -1, -1) if nearest is None else AnswerSpan(text, *nearest.span())


def read_answers(value: Any, context: str) -> tuple[tuple[AnswerSpan, ...] | None, str | None]:
    """Return the answers found in the passage, and what is wrong with them (then they are None)."""
    pairs = answer_pairs(value)
    if pairs is None:
        return None, (
            "answers must be a list of objects with text and answer_start, or an object of two such "
            f"lists; got {value!r:.80}"
        )
    for text, _ in pairs:
        reason = text_problem(text)
        if reason is not None:
            return None, reason
    return tuple(locate(context, text, start) for text, start in pairs), None


def answer_pairs(value: Any) -> list[tuple[str, int]] | None:
    """Return text and start of each answer, or None if there is something else."""
    if value is None:
        return []
    items: Iterable[tuple[Any, Any]]
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        texts, starts = table.get("text"), table.get("answer_start")
        if not isinstance(texts, list):
            items = [(texts, starts)]
        else:
            count = len(cast("list[Any]", texts))
            several = cast("list[Any]", starts) if isinstance(starts, list) else [-1] * count
            if len(several) != count:
                return None
            items = zip(cast("list[Any]", texts), several, strict=True)
    elif isinstance(value, list):
        items = [
            (
                cast("dict[str, Any]", item).get("text"),
                cast("dict[str, Any]", item).get("answer_start"),
            )
            if isinstance(item, dict)
            else (item, None)
            for item in cast("list[Any]", value)
        ]
    else:
        return None
    pairs: list[tuple[str, int]] = []
    for text, start in items:
        place = -1 if start is None else start
        if not isinstance(text, str) or isinstance(place, bool) or not isinstance(place, int):
            return None
        pairs.append((text, place if abs(place) < MAX_NUMBER else -1))
    return pairs


def text_of(value: Any) -> str | None:
    """Return a value if it is a text."""
    return value if isinstance(value, str) else None
