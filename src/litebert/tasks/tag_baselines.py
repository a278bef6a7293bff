"""What an entity score is worth: each word with the tag it most often had in training."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from litebert.data.tagged.record import Span, TaggedText
from litebert.data.tagged.schemes import entities
from litebert.errors import DataError
from litebert.tasks.baselines import Baseline
from litebert.tasks.tag_evaluation import tag_words
from litebert.tasks.tag_records import true_spans

__all__ = [
    "WORD_MAJORITY",
    "WORD_METHOD",
    "majority_intent",
    "word_majority",
    "word_majority_spans",
]

WORD_MAJORITY: Final = "word_majority"
WORD_METHOD: Final = "each word with its most frequent tag in training, O if it was not seen"


def word_majority(
    train: Sequence[TaggedText],
    evaluation: Sequence[TaggedText],
    score: Callable[[list[list[Span]]], dict[str, float]],
) -> Baseline:
    """Score the most frequent tag of each word form.

    Raises:
        DataError: no records, or one without spans.
    """
    start = time.perf_counter()
    scores = score(word_majority_spans(train, evaluation))
    return Baseline(WORD_MAJORITY, WORD_METHOD, scores, time.perf_counter() - start)


def word_majority_spans(
    train: Sequence[TaggedText], evaluation: Sequence[TaggedText]
) -> list[list[Span]]:
    """Return the spans that the most frequent tag of each word form makes.

    Among equally frequent tags the first in the alphabet is taken, so that the answer does not
    depend on the order of the texts.

    Raises:
        DataError: no training records, or one without spans.
    """
    if not train:
        raise DataError("a baseline needs training texts; there are none")
    counts: dict[str, Counter[str]] = {}
    for record in train:
        tags = tag_words(record, true_spans(record))
        for (start, end), tag in zip(record.words, tags, strict=True):
            counts.setdefault(record.text[start:end], Counter())[tag] += 1
    best = {word: min(seen, key=lambda t: (-seen[t], t)) for word, seen in counts.items()}
    return [_spans(record, best) for record in evaluation]


def majority_intent(train: Sequence[TaggedText]) -> str:
    """Return the most frequent intent, the first in the alphabet among equals.

    Raises:
        DataError: no training record has an intent.
    """
    seen = Counter(record.intent for record in train if record.intent is not None)
    if not seen:
        raise DataError("a baseline needs training texts with an intent; there are none")
    return min(seen, key=lambda name: (-seen[name], name))


def _spans(record: TaggedText, best: dict[str, str]) -> list[Span]:
    tags = [best.get(record.text[start:end], "O") for start, end in record.words]
    parts = [("O", "") if tag == "O" else (tag[0], tag[2:]) for tag in tags]
    return [
        Span(record.words[a][0], record.words[b - 1][1], label) for a, b, label in entities(parts)
    ]
