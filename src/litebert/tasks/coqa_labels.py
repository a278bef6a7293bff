"""From a free answer of CoQA to what can be learnt: its kind, and the words of the story it rests on."""

from __future__ import annotations

import re
from typing import Final

from litebert.data.dialogues import CoqaQuestion
from litebert.data.question_parts import locate
from litebert.tasks.squad_scores import normalize_answer

__all__ = ["KINDS", "answer_kind", "learnt_span"]

KINDS: Final = ("span", "yes", "no", "unknown")
"""What an answer is: words of the story, or one of three words."""
MAX_WORDS: Final = 60
"""Longest part of the evidence that is compared with an answer."""
_WORD: Final = re.compile(r"\S+")


def answer_kind(answer: str) -> str:
    """Return what kind of answer a text is, one of `KINDS`."""
    plain = normalize_answer(answer)
    return plain if plain in KINDS[1:] else KINDS[0]


def learnt_span(record: CoqaQuestion) -> tuple[int, int] | None:
    """Return the characters of the story to point to; None if there are none.

    For an answer in words of the story that is the part of the evidence whose words have the highest
    F1 with it, the shortest and first of them; for yes and no the whole evidence.
    """
    answer, evidence = record.answers[0], record.evidence
    if answer_kind(answer) != KINDS[0]:
        return None if evidence is None else (evidence.start, evidence.end)
    if evidence is None:
        found = locate(record.context, answer.strip(), -1)
        return (found.start, found.end) if found.is_located else None
    part = record.context[evidence.start : evidence.end]
    best = _best_part(part, normalize_answer(answer).split())
    start, end = best or (0, len(part))
    return evidence.start + start, evidence.start + end


def _best_part(text: str, wanted: list[str]) -> tuple[int, int] | None:
    """Return the characters of the run of words with the highest F1; None if no word is in common."""
    words = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    bags = [normalize_answer(text[a:b]).split() for a, b in words]
    best, where = 0.0, None
    for first in range(len(words)):
        left, common, size = list(wanted), 0, 0
        for last in range(first, min(len(words), first + MAX_WORDS)):
            for word in bags[last]:
                size += 1
                if word in left:
                    left.remove(word)
                    common += 1
            score = 2 * common / (size + len(wanted)) if common else 0.0
            shorter = where is not None and last - first < where[1] - where[0]
            if score > best or (score == best and score and shorter):
                best, where = score, (first, last)
    return None if where is None else _trimmed(text, words[where[0]][0], words[where[1]][1])


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out ASCII punctuation at the ends, which no score looks at."""
    while end - 1 > start and text[end - 1] in ",.;:!?\"')":
        end -= 1
    while start + 1 < end and text[start] in "\"'(":
        start += 1
    return start, end
