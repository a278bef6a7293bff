"""Parts of questions about a passage: an answer with its place, and an earlier turn of a dialogue."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

from litebert.data.rows import text_problem

__all__ = [
    "MAX_NUMBER", "AnswerSpan", "Turn", "answer_pairs", "detected_answers", "locate", "read_answers",
    "text_of",
]  # fmt: skip

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


def detected_answers(values: dict[str, Any], context: str) -> tuple[Any, str | None]:
    """Return the answers of a question of MRQA as `read_answers` takes them, or what is wrong.

    `detected_answers` says where answers stand, as (first, last) characters; `answers` are the
    references, of which those that were not detected are kept.

    Args:
        values: the question; one without `detected_answers` is returned as it is.
        context: the passage.
    """
    given = values.get("answers")
    if "detected_answers" not in values:
        return given, None
    found: Any = values["detected_answers"]
    items: list[dict[str, Any]] = []
    for item in cast("list[Any]", found) if isinstance(found, list) else [found]:
        spans: Any = (
            cast("dict[str, Any]", item).get("char_spans") if isinstance(item, dict) else None
        )
        for span in cast("list[Any]", spans) if isinstance(spans, list) and spans else [spans]:
            if not _is_span(span, len(context)):
                return None, (
                    f"detected_answers must hold char_spans, lists of [first, last] within the "
                    f"{len(context)} characters of the passage; got {item!r:.80}"
                )
            first, last = cast("list[int]", span)
            items.append({"text": context[first : last + 1], "answer_start": first})
    texts: set[str] = {" ".join(item["text"].split()).lower() for item in items}
    others = cast("list[Any]", given) if isinstance(given, list) else []
    rest = [o for o in others if not isinstance(o, str) or " ".join(o.split()).lower() not in texts]
    return [*items, *rest], None


def _is_span(span: Any, length: int) -> bool:
    if not isinstance(span, list) or len(cast("list[Any]", span)) != 2:
        return False
    first, last = cast("list[Any]", span)
    is_whole = all(isinstance(x, int) and not isinstance(x, bool) for x in (first, last))
    return is_whole and 0 <= first <= last < length


def text_of(value: Any) -> str | None:
    """Return a value if it is a text."""
    return value if isinstance(value, str) else None
