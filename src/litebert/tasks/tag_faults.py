"""Signs that a tagger learnt nothing, or learnt from wrong labels, in plain sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from litebert.data.tagged.record import Span

__all__ = ["entity_faults"]

_MIN_ENTITIES: Final = 10
"""Fewer true or answered entities than this say little."""
_MIN_TYPE: Final = 10
"""True entities of a type that should have been found at least once."""
_FLOODED_FRACTION: Final = 0.7
"""Part of all characters (blanks between words included) that answers never cover honestly."""


def entity_faults(
    truth: Sequence[Sequence[Span]],
    answers: Sequence[Sequence[Span]],
    types: Sequence[str],
    sizes: Sequence[int],
) -> list[str]:
    """Return what looks wrong, each with its likely cause and what to do.

    Args:
        truth: true spans of each text.
        answers: answered spans of each text.
        types: types that were trained.
        sizes: characters of each text.
    """
    true = Counter(span.label for spans in truth for span in spans)
    given = Counter(span.label for spans in answers for span in spans)
    faults: list[str] = []
    unseen = {label: count for label, count in true.items() if label not in set(types)}
    if unseen:
        faults.append(
            f"{sum(unseen.values()):,} entities are of types that the training texts do not have "
            f"({_names(unseen)}); they always count as missed: correct the label or add examples"
        )
    if true.total() < _MIN_ENTITIES:
        return faults
    if not given:
        faults.append(
            f"no entity was answered, though the texts have {true.total():,}: the model says O for "
            "every word, which is right for most words and the usual first state; train for more "
            "epochs or with a higher learning rate (an encoder with random weights needs many)"
        )
        return faults
    if len(given) == 1 and len(true) > 1 and given.total() >= _MIN_ENTITIES:
        faults.append(
            f"all {given.total():,} answered entities are of the type {next(iter(given))!r:.40}, "
            f"though the texts have {len(true)} types: training ended too early or the types are "
            "too unequal; train for more epochs, or add examples of the others"
        )
    else:
        missing = {k: n for k, n in true.items() if n >= _MIN_TYPE and not given[k] and k in types}
        if missing:
            faults.append(
                f"never answered: {_names(missing)}, though there are {sum(missing.values()):,} of "
                "them; add training examples of these types, or train for more epochs"
            )
    faults += _flooded(truth, answers, sizes)
    faults += _shifted(truth, answers)
    return faults


def _flooded(
    truth: Sequence[Sequence[Span]], answers: Sequence[Sequence[Span]], sizes: Sequence[int]
) -> list[str]:
    covered, wanted = (
        sum(span.end - span.start for spans in side for span in spans) for side in (answers, truth)
    )
    total = sum(sizes)
    if covered > _FLOODED_FRACTION * total and 2 * wanted < total:
        return [
            f"answered entities cover {covered:,} of {total:,} characters, true ones {wanted:,}: nearly "
            "every word is called part of an entity; the learning rate is likely too high, lower it"
        ]
    return []


def _shifted(truth: Sequence[Sequence[Span]], answers: Sequence[Sequence[Span]]) -> list[str]:
    exact = near = 0
    for true, given in zip(truth, answers, strict=True):
        wanted = set(true)
        for span in given:
            if span in wanted:
                exact += 1
            else:
                near += any(
                    span.start < other.end and other.start < span.end and span.label == other.label
                    for other in true
                )
    if near >= _MIN_ENTITIES and near > 2 * exact:
        return [
            f"{near:,} answers touch an entity of their type but have other borders, and only "
            f"{exact:,} are exact: labels of training and evaluation texts may end differently "
            "(titles, articles, white space), or spans cut through words; look at some of both"
        ]
    return []


def _names(counts: dict[str, int]) -> str:
    names = sorted(counts, key=lambda name: (-counts[name], name))
    return ", ".join(f"{name[:40]}" for name in names[:5]) + (", ..." if len(names) > 5 else "")
