"""QuAC and CoQA: dialogues about a passage, one record a question, with the turns before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from litebert.data.question_files import read_json_file, read_source
from litebert.data.question_parts import AnswerSpan, Turn, locate, read_answers, text_of
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource, RecordSplit
from litebert.data.rows import BadRows, text_problem
from litebert.errors import DataError

__all__ = ["CANNOT_ANSWER", "CoqaQuestion", "QuacQuestion", "read_coqa", "read_quac"]

CANNOT_ANSWER: Final = "CANNOTANSWER"
"""Answer of QuAC where there is none; stands at the end of each of its passages."""
YES_NO: Final = ("y", "n", "x")
"""QuAC: the answer says yes, no, neither."""
FOLLOW_UP: Final = ("y", "m", "n")
"""QuAC: the next question should, may, should not go on from here."""


Q = TypeVar("Q", "QuacQuestion", "CoqaQuestion")


@dataclass(frozen=True, slots=True)
class QuacQuestion:
    """A question of a QuAC dialogue.

    Attributes:
        id: `<dialogue>_q#<number>`.
        question: what is asked.
        context: the passage without the word for "no answer" at its end.
        answers: reference answers, those without a place saying CANNOTANSWER among them.
        reference: the answer that the dialogue went on with; what is learnt.
        yesno: one of `YES_NO`; None if not known.
        followup: one of `FOLLOW_UP`; None if not known.
        history: the turns before, first to last.
        group: id of the dialogue.
        path: file it came from.
        line: number of the question in its file.
    """

    id: str
    question: str
    context: str
    answers: tuple[AnswerSpan, ...]
    reference: AnswerSpan | None
    yesno: str | None
    followup: str | None
    history: tuple[Turn, ...]
    group: str
    path: Path
    line: int

    @property
    def is_labelled(self) -> bool:
        """Whether the right answer is known."""
        return self.reference is not None


@dataclass(frozen=True, slots=True)
class CoqaQuestion:
    """A question of a CoQA dialogue.

    Attributes:
        id: `<dialogue>#<turn>`.
        question: what is asked.
        context: the story.
        answers: reference answers, free text; the first is the one the dialogue went on with.
        evidence: the part of the story that the first answer rests on; None for "unknown".
        history: the turns before, first to last.
        domain: source of the story, for example "wikipedia".
        turn: number of the turn, from 1.
        group: id of the dialogue.
        path: file it came from.
        line: number of the question in its file.
    """

    id: str
    question: str
    context: str
    answers: tuple[str, ...]
    evidence: AnswerSpan | None
    history: tuple[Turn, ...]
    domain: str
    turn: int
    group: str
    path: Path
    line: int

    @property
    def is_labelled(self) -> bool:
        """Whether the right answer is known."""
        return bool(self.answers)


def read_quac(path: Path, options: ReadOptions, labelled: bool) -> RecordSource[QuacQuestion]:
    """Read QuAC files; see `read_squad` for folders and faults.

    Raises:
        DataError: the file or a question cannot be used.
    """

    def paragraphs(document: Any) -> Iterator[Any]:
        for article in _items(document, "data"):
            yield from _items(article, "paragraphs")

    return _read_dialogues(path, options, labelled, paragraphs, "qas", _quac_dialogue)


def _quac_dialogue(
    paragraph: Any, number: int, bad_rows: BadRows, labelled: bool
) -> list[QuacQuestion]:
    place = number + 1
    table = _table(paragraph)
    context, dialogue = text_of(table.get("context")), _name(table.get("id"), f"#{place}")
    qas = _items(paragraph, "qas", strict=True)
    reason = "no context of text" if context is None else text_problem(context)
    if reason is not None or context is None or not qas:
        bad_rows.add(place, str(reason or "a dialogue without qas"), column="context")
        return []
    # Without the word the model need not be told, window by window, where "no answer" stands.
    bare = context.rstrip().removesuffix(CANNOT_ANSWER).rstrip() if context.rstrip().endswith(
        CANNOT_ANSWER
    ) else context  # fmt: skip
    records: list[QuacQuestion] = []
    history: tuple[Turn, ...] = ()
    for offset, qa in enumerate(qas):
        values, line = _table(qa), place + offset
        question = text_of(values.get("question"))
        reason = _question_problem(question)
        if reason is not None or question is None:
            bad_rows.add(line, str(reason), column="question")
            continue
        answers, reason = read_answers(values.get("answers"), bare)
        original, worse = read_answers([values.get("orig_answer")], bare)
        if worse is not None:
            original = answers[:1] if answers else ()
        answers = answers or original or ()
        reference = original[0] if original else None
        yesno, followup = text_of(values.get("yesno")), text_of(values.get("followup"))
        reason = reason or _quac_problem(reference, yesno, followup, labelled)
        if reason is not None:
            bad_rows.add(line, reason)
            continue
        records.append(
            QuacQuestion(
                id=_name(values.get("id"), f"{dialogue}_q#{offset}"),
                question=question, context=bare, answers=answers, reference=reference,
                yesno=yesno, followup=followup, history=history, group=dialogue,
                path=bad_rows.path, line=line,
            )
        )  # fmt: skip
        history = (*history, Turn(question, reference.text if reference else ""))
    return records


def _quac_problem(
    reference: AnswerSpan | None, yesno: str | None, followup: str | None, labelled: bool
) -> str | None:
    if yesno is not None and yesno not in YES_NO:
        return f"yesno is {yesno!r:.40}; allowed: {', '.join(YES_NO)}"
    if followup is not None and followup not in FOLLOW_UP:
        return f"followup is {followup!r:.40}; allowed: {', '.join(FOLLOW_UP)}"
    if not labelled:
        return None
    if reference is None:
        return "there is no answer; an answer or CANNOTANSWER is needed to learn or score"
    if not reference.is_located and reference.text != CANNOT_ANSWER:
        return f"the answer {reference.text!r:.80} does not occur in the passage"
    return None


def read_coqa(path: Path, options: ReadOptions, labelled: bool) -> RecordSource[CoqaQuestion]:
    """Read CoQA files; see `read_squad` for folders and faults.

    Raises:
        DataError: the file or a question cannot be used.
    """

    def stories(document: Any) -> Iterator[Any]:
        yield from _items(document, "data")

    return _read_dialogues(path, options, labelled, stories, "questions", _coqa_dialogue)


def _read_dialogues(
    path: Path,
    options: ReadOptions,
    labelled: bool,
    dialogues: Callable[[Any], Iterable[Any]],
    questions: str,
    make: Callable[[Any, int, BadRows, bool], list[Q]],
) -> RecordSource[Q]:
    """Read files of dialogues.

    Args:
        path: file or folder.
        options: as every reader.
        labelled: whether answers must be there.
        dialogues: yields the dialogues of a parsed document.
        questions: key of the questions in a dialogue.
        make: makes the records of a dialogue; the number is that of questions before it.
    """

    def read(file: Path, role: str) -> tuple[RecordSplit[Q], tuple[str, ...]]:
        del role
        bad_rows = BadRows(file, options.on_bad_row)
        content = read_json_file(file, options, bad_rows)
        records: list[Q] = []
        number = 0
        for _, document in content.items:
            for dialogue in dialogues(document):
                records += make(dialogue, number, bad_rows, labelled)
                number += max(1, len(_items(dialogue, questions, strict=True)))
        return _split(records, file, content.sha256, bad_rows), ()

    return read_source(path, read)


def _coqa_dialogue(item: Any, number: int, bad_rows: BadRows, labelled: bool) -> list[CoqaQuestion]:
    place = number + 1
    table = _table(item)
    story, dialogue = text_of(table.get("story")), _name(table.get("id"), f"#{place}")
    questions = _items(item, "questions", strict=True)
    reason = "no story of text" if story is None else text_problem(story)
    if reason is not None or story is None or not questions:
        bad_rows.add(place, str(reason or "a dialogue without questions"), column="story")
        return []
    answers = _items(item, "answers", strict=True)
    others = [
        cast("list[Any]", rest)
        for rest in _table(table.get("additional_answers")).values()
        if isinstance(rest, list)
    ]
    records: list[CoqaQuestion] = []
    history: tuple[Turn, ...] = ()
    for offset, entry in enumerate(questions):
        line = place + offset
        question = text_of(_table(entry).get("input_text"))
        first = _table(answers[offset]) if offset < len(answers) else {}
        given = [first, *(_table(rest[offset]) for rest in others if offset < len(rest))]
        texts = tuple(text for one in given if (text := text_of(one.get("input_text"))) is not None)
        reason = _question_problem(question)
        reason = reason or next(filter(None, map(text_problem, texts)), None)
        if reason is None and labelled and (not texts or text_of(first.get("input_text")) is None):
            reason = "there is no answer; a turn needs one to learn or score"
        if reason is not None or question is None:
            bad_rows.add(line, str(reason))
            continue
        records.append(
            CoqaQuestion(
                id=f"{dialogue}#{offset + 1}",
                question=question, context=story, answers=texts, evidence=_evidence(first, story),
                history=history, domain=text_of(table.get("source")) or "", turn=offset + 1,
                group=dialogue, path=bad_rows.path, line=line,
            )
        )  # fmt: skip
        history = (*history, Turn(question, texts[0] if texts else ""))
    return records


def _evidence(answer: dict[str, Any], story: str) -> AnswerSpan | None:
    """The told part of the story, without the blanks around it."""
    start, end = answer.get("span_start"), answer.get("span_end")
    text = text_of(answer.get("span_text"))
    if not isinstance(start, int) or isinstance(start, bool) or not isinstance(end, int):
        start = end = -1
    if 0 <= start < end <= len(story):
        told = story[start:end]
        inner = told.strip()
        if inner:
            begin = start + told.index(inner)
            return AnswerSpan(inner, begin, begin + len(inner))
    if text is None or not text.strip() or text == "unknown":
        return None
    found = locate(story, text.strip(), -1)
    return found if found.is_located else None


def _question_problem(question: str | None) -> str | None:
    if question is None or not question.strip():
        return "there is no question; give a text"
    return text_problem(question)


def _split(records: list[Any], path: Path, digest: str, bad_rows: BadRows) -> RecordSplit[Any]:
    seen: set[str] = set()
    kept: list[Any] = []
    for record in records:
        if record.id in seen:
            bad_rows.add(record.line, f"the id {record.id!r:.80} occurs twice; rename it")
            continue
        seen.add(record.id)
        kept.append(record)
    if not kept:
        first = f"; the first: {bad_rows.skipped[0].reason}" if bad_rows.skipped else ""
        raise DataError(
            f"no usable questions ({len(bad_rows.skipped)} skipped{first}); allowed: JSON of dialogues "
            "as published, with a list 'data'",
            path=path,
        )
    return RecordSplit(kept, path, digest, tuple(bad_rows.skipped))


def _items(value: Any, key: str, *, strict: bool = False) -> list[Any]:
    """The list under a key; unless `strict`, something else stands for the one item itself."""
    found = _table(value).get(key)
    if isinstance(found, list):
        return cast("list[Any]", found)
    if strict:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _name(value: Any, default: str) -> str:
    return value if isinstance(value, str) and value and text_problem(value) is None else default
