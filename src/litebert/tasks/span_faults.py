"""What answers from passages look like when training has collapsed, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from litebert.tasks.records import Answer

__all__ = ["span_faults"]

_FEWEST = 8
"""Answers below which nothing is concluded."""
_REMEDY = (
    "train longer (SQuAD takes 2 to 3 epochs, some thousand steps), with a lower learning rate (ALBERT "
    "large and above: 1e-5 to 3e-5) and warm-up, and check that vocabulary and weights belong together"
)


def span_faults(
    nothing: str, answers: Sequence[Answer], *, can_be_nothing: bool, some_have_answers: bool
) -> list[str]:
    """Return signs of a collapse in sentences.

    Args:
        nothing: value of an answer that says there is none.
        answers: one for each question, with `start` and `end` in the details of a span.
        can_be_nothing: whether the task has questions without an answer.
        some_have_answers: whether some of these questions have one, as far as is known.
    """
    if len(answers) < _FEWEST:
        return []
    empty = sum(answer.value == nothing for answer in answers)
    if empty == len(answers):
        if can_be_nothing and not some_have_answers:
            return []
        cause = (
            "the model says of every question that it has no answer: it has learnt no more than how "
            "often that is so, or the threshold for no answer is too low"
            if can_be_nothing
            else "the model gives no answer to any question: the passages are empty, or too few steps "
            "were made to learn anything"
        )
        return [f"all {len(answers)} answers are empty; {cause}. {_REMEDY}"]
    found: list[str] = []
    places = [
        (answer.details["start"], answer.details["end"])
        for answer in answers
        if answer.value != nothing and "start" in answer.details
    ]
    if len(places) >= _FEWEST and len(set(places)) == 1:
        found.append(
            f"all {len(places)} answers stand at the same place (characters {places[0][0]} to "
            f"{places[0][1]}), whatever was asked: the model has learnt positions, not texts. {_REMEDY}"
        )
    elif len(places) >= _FEWEST and len({start for start, _ in places}) == 1:
        found.append(
            f"all {len(places)} answers start at character {places[0][0]}, whatever was asked: the model "
            f"has learnt positions, not texts. {_REMEDY}"
        )
    return found
