"""The wrong answers to records that a report shows, the most certain first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from litebert.tasks.evaluation import MAX_MISTAKES, Mistake

if TYPE_CHECKING:
    from litebert.tasks.records import Answer, RecordTask

__all__ = ["right_answers", "worst_answers"]

FULL: Final = 1.0 - 1e-9
"""Main scores are shares; at this one there is nothing wrong."""
_KNOWN: Final = frozenset({"label", "file", "line", "id"})


def worst_answers(
    task: RecordTask,
    records: Sequence[Any],
    answers: Sequence[Answer],
    *,
    max_mistakes: int = MAX_MISTAKES,
) -> tuple[Mistake, ...]:
    """Return the answers whose own score is not full, most certain first; none for embeddings."""
    if task.head == "embedding":
        return ()  # one pair alone has no correlation
    wrong = [
        (answer, record)
        for record, answer in zip(records, answers, strict=True)
        if task.evaluate([record], [answer])[task.metric] < FULL
    ]
    wrong.sort(key=lambda pair: -pair[0].score)
    return tuple(_mistake(task, record, answer) for answer, record in wrong[:max_mistakes])


def right_answers(
    task: RecordTask, records: Sequence[Any], answers: Sequence[Answer]
) -> list[bool]:
    """Return for each record whether its answer alone gets the full main score."""
    return [
        task.evaluate([record], [answer])[task.metric] >= FULL
        for record, answer in zip(records, answers, strict=True)
    ]


def _mistake(task: RecordTask, record: Any, answer: Answer) -> Mistake:
    shown = task.show(record)
    texts = [f"{key}: {_word(value)}" for key, value in shown.items() if key not in _KNOWN]
    return Mistake(
        text="\n".join(texts),
        pair=None,
        truth=_word(shown.get("label")),
        answer=_word(answer.value),
        confidence=min(1.0, max(0.0, answer.score)),
        loss=0.0,
        path=str(shown.get("file", "")).rsplit("/", 1)[-1],
        line=int(shown.get("line", 0)),
    )


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
