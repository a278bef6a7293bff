"""Scores of entities: an answer counts if start, end and type are all right.

Source: the official CoNLL-2002/2003 evaluation; averages as seqeval reports them: macro over all
types that occur in truth or answers, weighted by the number of true entities, 0 where a
denominator is 0. Differs from seqeval: where there is no entity at all, true or answered, all is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

__all__ = ["entity_scores", "share_equal"]

Entity = tuple[int, int, str]


def entity_scores(
    truth: Sequence[Iterable[Entity]], answers: Sequence[Iterable[Entity]], name: str
) -> dict[str, float]:
    """Return precision, recall and F1 over all texts, all in [0, 1].

    Args:
        truth: (start, end, type) of the entities of each text; duplicates count once.
        answers: likewise, in the same order.
        name: what keys begin with.

    Returns:
        `NAME_f1`, `NAME_precision`, `NAME_recall` (micro: all entities together), the same with
        `_macro` and `_weighted`, and `NAME_f1/TYPE` and so on for each type that is true or
        answered.
    """
    right, true, given = Counter[str](), Counter[str](), Counter[str]()
    for ours, theirs in zip(answers, truth, strict=True):
        a, b = set(ours), set(theirs)
        _count(given, a)
        _count(true, b)
        _count(right, a & b)
    types = sorted(set(true) | set(given))
    triples = {kind: _triple(right[kind], given[kind], true[kind]) for kind in types}
    total = true.total()
    micro = _triple(right.total(), given.total(), total)
    macro = _mean([triples[kind] for kind in types], [1.0] * len(types))
    weighted = _mean([triples[kind] for kind in types], [float(true[kind]) for kind in types])
    scores: dict[str, float] = {}
    for suffix, triple in (("", micro), ("_macro", macro), ("_weighted", weighted)):
        for measure, value in zip(("precision", "recall", "f1"), triple, strict=True):
            scores[f"{name}_{measure}{suffix}"] = value
    for kind in types:
        for measure, value in zip(("precision", "recall", "f1"), triples[kind], strict=True):
            scores[f"{name}_{measure}/{kind}"] = value
    return scores


def _count(counter: Counter[str], entities: Iterable[Entity]) -> None:
    counter.update(entity[2] for entity in entities)


def _triple(right: int, given: int, true: int) -> tuple[float, float, float]:
    if not given and not true:
        return 1.0, 1.0, 1.0  # nothing to find, and nothing was answered
    precision = right / given if given else 0.0
    recall = right / true if true else 0.0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def _mean(
    triples: Sequence[tuple[float, float, float]], weights: Sequence[float]
) -> tuple[float, float, float]:
    if not triples:
        return _triple(0, 0, 0)
    total = sum(weights)
    if not total:
        return 0.0, 0.0, 0.0
    columns = [
        sum(triple[i] * weight for triple, weight in zip(triples, weights, strict=True)) / total
        for i in range(3)
    ]
    return columns[0], columns[1], columns[2]


def share_equal(truth: Sequence[Hashable], answers: Sequence[Hashable]) -> float:
    """Return the share of equal pairs, in [0, 1]; 0 if there are none."""
    pairs = zip(truth, answers, strict=True)
    return sum(a == b for a, b in pairs) / len(truth) if truth else 0.0
