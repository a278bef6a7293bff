"""Operations over records: questions with passages, texts to tag, questions with choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from litebert.data.choices.record import ChoiceRecord, record_problem
from litebert.errors import DataError
from litebert.serve.engine.jobs import Plan, write_json
from litebert.serve.engine.operations.inputs import task_name

if TYPE_CHECKING:
    from litebert.runtime.session import Session
    from litebert.serve.engine.jobs import Outputs
    from litebert.tasks.records import Answer, RecordTask

__all__ = ["answer_questions", "choose", "tag"]

_SPANS: Final = ("span", "span_joint")
_HERE: Final = Path("<request>")


def answer_questions(session: Session, args: Mapping[str, Any]) -> Plan:
    """Plan answers from passages: text, score and place; an empty text where there is none.

    Raises:
        DataError: another model, or a question that makes no record.
    """
    task = _task(session, _SPANS, "answers questions from a passage")
    make = getattr(task, "from_text", None)
    if make is None:
        raise DataError(
            f"the task {task.name!r} needs a whole dialogue; only models of single questions are served"
        )
    records = [make(item["question"], item["context"]) for item in args["items"]]
    top = args["top_k"]

    def one(answer: Answer) -> Any:
        first = {
            "answer": answer.value,
            "score": answer.score,
            "start": answer.details.get("start", 0),
            "end": answer.details.get("end", 0),
        }
        if "null_probability" in answer.details:
            first["null_probability"] = answer.details["null_probability"]
        if top is None:
            return first
        others = [
            {"answer": o["text"], "score": o["score"], "start": o["start"], "end": o["end"]}
            for o in map(_alternative, answer.details.get("alternatives", ()))
        ]
        return [first, *others][:top]

    return _plan(session, records, one, is_single=args["single"])


def tag(session: Session, args: Mapping[str, Any]) -> Plan:
    """Plan the entities of texts; a joint model gives the intent too.

    Raises:
        DataError: another model, or a text without a word.
    """
    task = cast("Any", _task(session, ("token",), "tags words"))
    records = [task.from_text(text) for text in args["texts"]]

    def one(answer: Answer) -> Any:
        found = answer.value
        if isinstance(found, dict):  # intent and slots
            return found | {"score": answer.score}
        return [
            {
                "entity_group": entity["label"],
                "score": entity["score"],
                "word": entity["text"],
                "start": entity["start"],
                "end": entity["end"],
            }
            for entity in found
        ]

    return _plan(session, records, one, is_single=args["single"])


def choose(session: Session, args: Mapping[str, Any]) -> Plan:
    """Plan which choice answers each question.

    Raises:
        DataError: another model, or a question without choices or words.
    """
    _task(session, ("choice",), "chooses between answers")
    records: list[ChoiceRecord] = []
    for item in args["items"]:
        problem = record_problem(item["context"], item["question"], item["choices"])
        if problem is not None:
            raise DataError(f"{problem[0]}: {problem[1]}")
        number = len(records)
        records.append(
            ChoiceRecord(
                context=item["context"],
                question=item["question"],
                choices=tuple(item["choices"]),
                label=None,
                id=str(number),
                group=str(number),
                path=_HERE,
                line=number + 1,
            )
        )

    def one(answer: Answer) -> Any:
        return {"choice": answer.value, "score": answer.score} | answer.details

    return _plan(session, records, one, is_single=args["single"])


def _task(session: Session, heads: tuple[str, ...], does: str) -> RecordTask:
    task: Any = session.task
    if not hasattr(task, "features") or task.head not in heads:
        raise DataError(
            f"this route needs a model that {does}; this one was trained for {task_name(session)}: "
            "GET /info names the routes that it answers"
        )
    return cast("RecordTask", task)


def _plan(
    session: Session,
    records: Sequence[Any],
    one: Callable[[Answer], Any],
    *,
    is_single: bool,
) -> Plan:
    task = cast("RecordTask", session.task)
    features = task.features(records, session.tokenizer, labelled=False)

    def finish(outputs: Outputs) -> bytes:
        found = [one(answer) for answer in task.answers(records, features, outputs)]
        return write_json(found[0] if is_single else found)

    return Plan("head", [feature.encoded for feature in features], finish)


def _alternative(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "text": value.get("text", ""),
        "score": value.get("score", value.get("probability", 0.0)),
        "start": value.get("start", 0),
        "end": value.get("end", 0),
    }
