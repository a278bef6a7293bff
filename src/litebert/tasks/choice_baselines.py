"""What a multiple-choice score is worth: one position, the longest choice, and shared words."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.data.choices.record import LETTERS, ChoiceRecord
from litebert.errors import DataError
from litebert.tasks.bag_of_words import MAX_CHARACTERS
from litebert.tasks.baselines import MAJORITY, TFIDF, Baseline
from litebert.tasks.records import Answer

if TYPE_CHECKING:
    from litebert.tasks.choice import MultipleChoice

__all__ = [
    "LENGTH",
    "choice_baselines",
    "longest_choice",
    "most_frequent_position",
    "terms",
    "word_overlap",
]

LENGTH: Final = "longest"
MAX_TEXTS: Final = 20_000
"""Training texts that the word weights are learnt from."""
_WORD: Final = re.compile(r"\w+")
_CJK: Final = "\u2e80"
"""First character of the scripts that write words without spaces."""


def choice_baselines(
    task: MultipleChoice, train: Sequence[ChoiceRecord], evaluation: Sequence[ChoiceRecord]
) -> list[Baseline]:
    """Score the simple answers, the weakest first.

    Raises:
        DataError: no training or no evaluation questions.
    """
    if not train or not evaluation:
        raise DataError(
            f"{len(train)} training and {len(evaluation)} evaluation questions; baselines need at "
            "least one of each"
        )
    rules: tuple[tuple[str, str, Callable[[], list[int]]], ...] = (
        (MAJORITY, "always the most frequent position", lambda: most_frequent_position(train, evaluation)),
        (LENGTH, "always the longest choice", lambda: longest_choice(evaluation)),
        (TFIDF, "the choice with most words of passage and question (TF-IDF cosine)",
         lambda: word_overlap(train, evaluation)),
    )  # fmt: skip
    found: list[Baseline] = []
    for name, method, choose in rules:
        start = time.perf_counter()
        answers = [_answer(r, index) for r, index in zip(evaluation, choose(), strict=True)]
        scores = task.evaluate(evaluation, answers)
        found.append(Baseline(name, method, scores, time.perf_counter() - start))
    return sorted(found, key=lambda baseline: baseline.scores["accuracy"])


def most_frequent_position(
    train: Sequence[ChoiceRecord], evaluation: Sequence[ChoiceRecord]
) -> list[int]:
    """Answer each question with the position that is right most often among those it has."""
    counts = np.bincount([r.label for r in train if r.label is not None], minlength=len(LETTERS))
    return [int(counts[: len(record.choices)].argmax()) for record in evaluation]


def longest_choice(evaluation: Sequence[ChoiceRecord]) -> list[int]:
    """Answer each question with its longest choice, the first of equal ones."""
    return [int(np.argmax([len(choice) for choice in record.choices])) for record in evaluation]


def word_overlap(train: Sequence[ChoiceRecord], evaluation: Sequence[ChoiceRecord]) -> list[int]:
    """Answer with the choice whose TF-IDF vector is nearest to passage and question.

    The measure is the cosine with the question plus the cosine with the passage: in one vector with
    a long passage the words of the question would weigh nothing. Words are weighted by how rare they
    are in the training texts; scripts without spaces count as pairs of characters.
    """
    texts = dict.fromkeys(t for r in train for t in (r.context, r.question, *r.choices))
    seen = Counter(term for text in list(texts)[:MAX_TEXTS] for term in set(terms(text)))
    total = min(len(texts), MAX_TEXTS)
    weights = {term: math.log((1 + total) / (1 + count)) + 1 for term, count in seen.items()}
    rare = math.log(1 + total) + 1

    def vector(text: str) -> dict[str, float]:
        values = {
            term: (1 + math.log(count)) * weights.get(term, rare)
            for term, count in Counter(terms(text)).items()
        }
        norm = math.sqrt(sum(value * value for value in values.values())) or 1.0
        return {term: value / norm for term, value in values.items()}

    passages: dict[str, dict[str, float]] = {}
    chosen: list[int] = []
    for record in evaluation:
        if record.context not in passages:
            passages[record.context] = vector(record.context)
        known = (passages[record.context], vector(record.question))
        near = [
            sum(value * text.get(term, 0.0) for text in known for term, value in choice.items())
            for choice in map(vector, record.choices)
        ]
        chosen.append(int(np.argmax(near)))
    return chosen


def terms(text: str) -> list[str]:
    """Return the words of a text in lower case; pairs of characters for words of CJK scripts."""
    found: list[str] = []
    for word in _WORD.findall(text[:MAX_CHARACTERS].lower()):
        if max(word) < _CJK:
            found.append(word)
        else:
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
    return found


def _answer(record: ChoiceRecord, index: int) -> Answer:
    return Answer(record.choices[index], 1.0, {"index": index, "letter": LETTERS[index]})
