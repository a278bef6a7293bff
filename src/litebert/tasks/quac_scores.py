"""The official scores of QuAC, as shares in [0, 1] instead of percent.

Source: the published `scorer.py` of QuAC 0.2 and the paper (Choi et al. 2018), section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from litebert.data.dialogues import CANNOT_ANSWER
from litebert.tasks.squad_scores import word_f1

__all__ = ["QuacAnswer", "agreed", "human_f1", "left_out_f1", "quac_scores"]

MIN_HUMAN_F1: Final = 0.4
"""Questions on which people agree less are left out of all scores but `unfiltered_f1`."""


@dataclass(frozen=True, slots=True)
class QuacAnswer:
    """One answered question.

    Attributes:
        dialogue: id of its dialogue.
        golds: reference answers.
        prediction: the answer.
        is_yes_no_right: whether yes, no or neither was answered right.
        is_followup_right: whether the hint what to ask next is right.
    """

    dialogue: str
    golds: Sequence[str]
    prediction: str
    is_yes_no_right: bool = False
    is_followup_right: bool = False


def agreed(golds: Sequence[str]) -> list[str]:
    """Return "no answer" alone if at least half of the references say so, else the others."""
    spans = [gold for gold in golds if gold != CANNOT_ANSWER]
    return [CANNOT_ANSWER] if 2 * len(spans) <= len(golds) else spans


def human_f1(golds: Sequence[str]) -> float:
    """Return the mean F1 of each reference against the best other one; 1 for a single one."""
    if len(golds) == 1:
        return 1.0
    best = [max(word_f1(a, b) for j, b in enumerate(golds) if j != i) for i, a in enumerate(golds)]
    return _sum(best) / len(golds)


def left_out_f1(golds: Sequence[str], prediction: str) -> float:
    """Return the mean, over references left out, of the best F1 against the others."""
    scores = [_overlap(gold, prediction) for gold in golds]
    if len(scores) == 1:
        return scores[0]
    best = [max(scores[:i] + scores[i + 1 :]) for i in range(len(scores))]
    return _sum(best) / len(scores)


def quac_scores(answers: Sequence[QuacAnswer]) -> dict[str, float]:
    """Return the scores of QuAC.

    Returns:
        f1, unfiltered_f1, human_f1, heq_q and heq_d (questions and dialogues no worse than a
        person), yes_no, followup, unanswerable_accuracy; 0 where there is nothing to count.
    """
    f1: list[float] = []
    unfiltered: list[float] = []
    human: list[float] = []
    equal: list[float] = []
    yes_no: list[float] = []
    followup: list[float] = []
    unanswerable: list[float] = []
    dialogues: dict[str, float] = {}
    for answer in answers:
        golds = agreed(answer.golds)
        person, score = human_f1(golds), left_out_f1(golds, answer.prediction)
        dialogues.setdefault(answer.dialogue, 1.0)
        unfiltered.append(score)
        if person < MIN_HUMAN_F1:
            continue
        human.append(person)
        f1.append(score)
        yes_no.append(float(answer.is_yes_no_right))
        followup.append(float(answer.is_followup_right))
        if golds == [CANNOT_ANSWER]:
            unanswerable.append(score)
        equal.append(float(score >= person))
        if score < person:
            dialogues[answer.dialogue] = 0.0
    return {
        "f1": _mean(f1),
        "unfiltered_f1": _mean(unfiltered),
        "human_f1": _mean(human),
        "heq_q": _mean(equal),
        "heq_d": _mean(list(dialogues.values())),
        "yes_no": _mean(yes_no),
        "followup": _mean(followup),
        "unanswerable_accuracy": _mean(unanswerable),
    }


def _overlap(gold: str, prediction: str) -> float:
    if gold == CANNOT_ANSWER:
        return float(prediction == CANNOT_ANSWER)
    return word_f1(gold, prediction)


def _sum(values: Sequence[float]) -> float:
    total = 0.0
    for value in values:  # one after the other, so that equal references give equal floats
        total += value
    return total


def _mean(values: Sequence[float]) -> float:
    return _sum(values) / len(values) if values else 0.0
