"""Answered spans of records against the true ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from litebert.data.tagged.record import Span, TaggedText, clip_words
from litebert.tasks.entity_scores import entity_scores
from litebert.tasks.tag_records import true_spans

__all__ = ["span_scores", "tag_words"]


def span_scores(
    records: Sequence[TaggedText],
    answers: Sequence[Sequence[Span]],
    name: str,
    accuracy_name: str,
) -> dict[str, float]:
    """Return the entity scores of `entity_scores`, and the share of words with the right tag.

    Args:
        records: labelled.
        answers: spans of each, in order, never overlapping.
        name: what the keys of entity scores begin with.
        accuracy_name: key of the share of words whose IOB2 tag is right.

    Raises:
        DataError: a record without spans.
    """
    truth = [true_spans(record) for record in records]
    right = words = 0
    for record, true, given in zip(records, truth, answers, strict=True):
        a, b = tag_words(record, true), tag_words(record, given)
        right += sum(x == y for x, y in zip(a, b, strict=True))
        words += len(a)
    scores = entity_scores(truth, answers, name)
    return {accuracy_name: right / words if words else 0.0} | scores


def tag_words(record: TaggedText, spans: Sequence[Span]) -> list[str]:
    """Return the IOB2 tag of each word of a record."""
    places = np.asarray(record.words, np.int64).reshape(-1, 2)
    tags = ["O"] * len(places)
    for first, last, label in clip_words(spans, places[:, 0], places[:, 1]):
        tags[first:last] = [f"B-{label}", *[f"I-{label}"] * (last - first - 1)]
    return tags
