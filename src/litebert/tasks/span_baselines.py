"""Simple answers to questions about passages: a sentence, or none."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from litebert.tasks.baselines import Baseline
from litebert.tasks.records import Answer
from litebert.tasks.squad_scores import answer_words, normalize_answer

__all__ = ["constant_baseline", "first_sentence", "overlapping_sentence", "sentence_baselines"]

_SENTENCE: Final = re.compile(r"\S.*?(?:[.!?](?=\s)|[。！？]|(?=\n)|$)")
_FEW_BLANKS: Final = 0.02
"""Share of blanks in a text below which its words are not told apart by blanks."""

Evaluate = Callable[[Sequence[Any], Sequence[Answer]], dict[str, float]]


class _Asked(Protocol):
    @property
    def question(self) -> str: ...
    @property
    def context(self) -> str: ...


def constant_baseline(
    name: str, method: str, answer: Answer, records: Sequence[Any], evaluate: Evaluate
) -> Baseline:
    """Score one answer given to every question."""
    start = time.perf_counter()
    scores = evaluate(records, [answer] * len(records))
    return Baseline(name, method, scores, time.perf_counter() - start)


def sentence_baselines(records: Sequence[Any], evaluate: Evaluate) -> list[Baseline]:
    """Score the first sentence of the passage, and the one that has most of the question's words."""
    rules: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
        ("first_sentence", "the first sentence of the passage", first_sentence),
        (
            "overlap",
            "the sentence with most of the question's words, rare ones counting more",
            overlapping_sentence,
        ),
    )
    found: list[Baseline] = []
    for name, method, rule in rules:
        start = time.perf_counter()
        answers = [Answer(rule(record), 1.0) for record in records]
        found.append(
            Baseline(name, method, evaluate(records, answers), time.perf_counter() - start)
        )
    return found


def first_sentence(record: _Asked) -> str:
    """Return the first sentence of the passage."""
    return next(iter(_sentences(record.context)), "")


def overlapping_sentence(record: _Asked) -> str:
    """Return the sentence that shares most with the question; a word of n sentences counts 1/n."""
    sentences = _sentences(record.context)
    if not sentences:
        return ""
    split = characters_or_words(record.context)
    bags = [set(split(sentence)) for sentence in sentences]
    spread = Counter(word for bag in bags for word in bag)
    wanted = set(split(record.question))
    scores = [sum(1 / spread[word] for word in sorted(bag & wanted)) for bag in bags]
    return sentences[scores.index(max(scores))]


def characters_or_words(text: str) -> Callable[[str], list[str]]:
    """Return how to cut texts like this one: into words, or pairs of characters without blanks."""
    return _character_pairs if has_few_blanks(text) else answer_words


def has_few_blanks(text: str) -> bool:
    """Whether a text is in a script that does not put blanks between words."""
    return bool(text) and sum(map(str.isspace, text)) < _FEW_BLANKS * len(text)


def _character_pairs(text: str) -> list[str]:
    plain = normalize_answer(text).replace(" ", "")
    return [plain[i : i + 2] for i in range(max(1, len(plain) - 1))]


def _sentences(text: str) -> list[str]:
    return [match.group().strip() for match in _SENTENCE.finditer(text)]
