"""What looks like a collapse in answers to multiple-choice questions, said in sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from litebert.data.choices.record import LETTERS, ChoiceRecord

if TYPE_CHECKING:
    from litebert.tasks.records import Answer

__all__ = ["choice_faults"]

ENOUGH: Final = 20
"""Questions from which on shares mean something."""
MOST: Final = 0.95
"""Share of answers that one rule must explain to be named."""
FLAT: Final = 0.01
"""A best choice with a probability this near to 1/C is not preferred to the others."""
SIGMAS: Final = 2.0
"""Standard deviations above chance that an accuracy needs."""


def choice_faults(records: Sequence[ChoiceRecord], answers: Sequence[Answer]) -> list[str]:
    """Return sentences, each with the likely cause and what to do; none for fewer than 20 answers.

    Looked for: one position always, always the longest or the shortest choice, equal probabilities,
    and an accuracy no better than chance.
    """
    total = len(answers)
    if total < ENOUGH:
        return []
    found: list[str] = []
    indices: list[int] = [answer.details["index"] for answer in answers]
    position, times = Counter(indices).most_common(1)[0]
    right = Counter(record.label for record in records if record.label is not None)
    if times >= MOST * total and right[position] < MOST * max(1, right.total()):
        found.append(
            f"{times} of {total} answers are choice {LETTERS[position]}: the model has learnt a "
            "position, not the questions; train again with a lower --lr or another --seed"
        )
    for rule, name in ((max, "longest"), (min, "shortest")):
        hits, truths, unequal = _length_rule(records, indices, rule)
        if unequal >= ENOUGH and hits >= MOST * unequal and truths < MOST * unequal:
            found.append(
                f"{hits} of {unequal} answers are the {name} choice: the model has learnt lengths, not "
                "the questions; give more training questions, or balance the lengths of the choices"
            )
    flat = sum(
        answer.score - 1 / len(r.choices) < FLAT for r, answer in zip(records, answers, strict=True)
    )
    if flat >= MOST * total:
        found.append(
            f"in {flat} of {total} questions all choices are equally probable: nothing was learnt; "
            "train longer or with a higher --lr, and start from a pretrained model"
        )
    known = [(r, i) for r, i in zip(records, indices, strict=True) if r.label is not None]
    if len(known) >= ENOUGH:
        correct = sum(record.label == index for record, index in known)
        chances = [1 / len(record.choices) for record, _ in known]
        chance = sum(chances)
        spread = math.sqrt(sum(p * (1 - p) for p in chances))
        if correct <= chance + SIGMAS * spread:
            found.append(
                f"{correct} of {len(known)} answers are right, guessing gives {chance:.0f}: the score is "
                "that of chance; reading questions needs a pretrained model and many examples"
            )
    return found


def _length_rule(
    records: Sequence[ChoiceRecord], indices: Sequence[int], rule: object
) -> tuple[int, int, int]:
    """Return how many answers and labels are the one extreme choice, and of how many questions."""
    hits = truths = unequal = 0
    for record, index in zip(records, indices, strict=True):
        lengths = [len(choice) for choice in record.choices]
        extreme = max(lengths) if rule is max else min(lengths)
        if lengths.count(extreme) != 1:
            continue
        unequal += 1
        hits += lengths[index] == extreme
        truths += record.label is not None and lengths[record.label] == extreme
    return hits, truths, unequal
