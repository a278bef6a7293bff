"""SQuAD and its kin: questions about passages, answered by a part of the passage or not at all.

Reads SQuAD 1.1 and 2.0, XQuAD, JSQuAD, MRQA, and the same as flat rows (JSON lines, `answers` as lists).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from litebert.data.question_files import JsonFile, read_json_file, read_source
from litebert.data.question_parts import (
    MAX_NUMBER,
    AnswerSpan,
    answer_pairs,
    detected_answers,
    read_answers,
    text_of,
)
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource, RecordSplit
from litebert.data.rows import BadRows, text_problem
from litebert.errors import DataError

__all__ = ["Question", "read_squad"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a passage.

    Attributes:
        id: name of the question; predictions are stored under it.
        question: what is asked.
        context: the passage.
        answers: reference answers; none if there is no answer, or if it is not known.
        is_impossible: the passage is known not to hold an answer.
        group: title of the article, or the passage where there is none.
        path: file it came from.
        line: 1-based line in JSON lines, else number of the question in its file.
    """

    id: str
    question: str
    context: str
    answers: tuple[AnswerSpan, ...]
    is_impossible: bool
    group: str
    path: Path
    line: int

    @property
    def is_labelled(self) -> bool:
        """Whether the right answer is known."""
        return self.is_impossible or bool(self.answers)


@dataclass(frozen=True, slots=True)
class _Raw:
    line: int
    place: int
    """Number of the question in its line, from 1; 1 in documents."""
    title: Any
    context: Any
    values: dict[str, Any]


def read_squad(path: Path, options: ReadOptions, labelled: bool) -> RecordSource[Question]:
    """Read a file, or the parts of a folder, into questions.

    A question without an answer is one that has none, if others of the file have answers. An answer
    that does not stand at its `answer_start` is looked for: the nearest occurrence is taken. Of a
    folder the test part may lack answers; it is then left out, with a note.

    Args:
        path: file or folder.
        options: encoding, format, and what to do with a question that cannot be used.
        labelled: whether answers are needed.

    Raises:
        DataError: the file or a question cannot be used.
    """

    def read(file: Path, role: str) -> tuple[RecordSplit[Question], tuple[str, ...]]:
        return _read_file(file, options, labelled and role != "test")

    source = read_source(path, read)
    if not labelled or source.test is None or any(q.is_labelled for q in source.test.records):
        return source
    notes = (*source.notes, f"{source.test.path.name}: its answers are withheld, so it is left out")
    return RecordSource(source.train, source.eval, None, notes)


def _read_file(
    path: Path, options: ReadOptions, labelled: bool
) -> tuple[RecordSplit[Question], tuple[str, ...]]:
    bad_rows = BadRows(path, options.on_bad_row)
    file = read_json_file(path, options, bad_rows)
    raw = list(_walk(file, bad_rows))
    has_answers = any(
        row.values.get("answers") or row.values.get("detected_answers") for row in raw
    )
    has_flags = any(row.values.get("is_impossible") is True for row in raw)
    if labelled and raw and not has_answers and not has_flags:
        raise DataError(
            f"none of the {len(raw)} questions has an answer: they are withheld, or under another name "
            "than 'answers'; such a file can be predicted, not learnt from or scored on",
            path=path,
        )
    records: list[Question] = []
    seen: set[str] = set()
    for row in raw:
        record = _question(row, path, bad_rows, labelled)
        if record is None:
            continue
        if record.id in seen:
            bad_rows.add(
                row.line,
                f"the id {record.id!r:.80} occurs twice, predictions could not be told apart; rename it",
            )
            continue
        seen.add(record.id)
        records.append(record)
    if not records:
        first = f"; the first: {bad_rows.skipped[0].reason}" if bad_rows.skipped else ""
        raise DataError(
            f"no usable questions ({len(bad_rows.skipped)} skipped{first}); allowed: SQuAD JSON, or rows "
            "with question, context and answers",
            path=path,
        )
    skipped = sorted(bad_rows.skipped, key=lambda row: row.line)
    split = RecordSplit(records, path, file.sha256, tuple(skipped))
    return split, tuple(_notes(records, raw)) if labelled else ()


def _notes(records: list[Question], raw: list[_Raw]) -> Iterator[str]:
    impossible = sum(record.is_impossible for record in records)
    if impossible:
        yield f"{impossible} of {len(records)} questions have no answer"
    given = {row.line: row.values.get("answers") for row in raw}
    moved = sum(_is_moved(record, given.get(record.line)) for record in records)
    if moved:
        yield f"{moved} answers do not stand at their answer_start; the nearest occurrence was taken"


def _is_moved(record: Question, answers: Any) -> bool:
    told = [start for _, start in answer_pairs(answers) or () if start >= 0]
    found = [answer.start for answer in record.answers]
    return len(told) == len(found) and told != found


def _walk(file: JsonFile, bad_rows: BadRows) -> Iterator[_Raw]:
    """Yield every question with its passage and title, in file order."""
    count = 0
    for line, item in file.items:
        if file.is_lines and _is_header(item):
            continue
        values: list[Any] = [item]
        first = count
        if not file.is_lines:
            data = cast("dict[str, Any]", item).get("data") if isinstance(item, dict) else item
            values = cast("list[Any]", data) if isinstance(data, list) else [item]
        for value in values:
            for title, context, qa in _questions(value):
                count += 1
                where = line if file.is_lines else count
                if not isinstance(qa, dict):
                    bad_rows.add(where, f"a question is an object of named values, got {_kind(qa)}")
                    continue
                place = count - first if file.is_lines else 1
                yield _Raw(where, place, title, context, cast("dict[str, Any]", qa))


def _is_header(item: Any) -> bool:
    """Whether a line only describes the file. Source: the format of MRQA 2019, first line."""
    return isinstance(item, dict) and list(cast("dict[str, Any]", item)) == ["header"]


def _questions(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (title, context, question) of an article, a passage, or a flat row."""
    if not isinstance(value, dict):
        yield None, None, value
        return
    item = cast("dict[str, Any]", value)
    paragraphs: Any = item.get("paragraphs", [item])
    if not isinstance(paragraphs, list):
        yield None, None, paragraphs
        return
    for paragraph in cast("list[Any]", paragraphs):
        if not isinstance(paragraph, dict):
            yield None, None, paragraph
            continue
        part = cast("dict[str, Any]", paragraph)
        qas: Any = part.get("qas", [part])
        for qa in cast("list[Any]", qas) if isinstance(qas, list) else [qas]:
            yield item.get("title"), part.get("context"), qa


def _question(row: _Raw, path: Path, bad_rows: BadRows, labelled: bool) -> Question | None:
    """Return a checked question, or None after telling `bad_rows` what is wrong with it."""
    values = row.values
    fields: dict[str, str] = {}
    for name, value in (("question", values.get("question")), ("context", row.context)):
        text = text_of(value)
        reason = (
            f"{name} is {_kind(value)}, expected a text" if text is None else text_problem(text)
        )
        if reason is None and name == "question" and text is not None and not text.strip():
            reason = "the question is empty"
        if reason is not None or text is None:
            bad_rows.add(row.line, str(reason), column=name)
            return None
        fields[name] = text
    flag = values.get("is_impossible")
    if flag is not None and not isinstance(flag, bool):
        reason = f"is_impossible is {flag!r:.40}; allowed: true, false"
        bad_rows.add(row.line, reason, column="is_impossible")
        return None
    given, reason = detected_answers(values, fields["context"])
    answers = None
    if reason is None:
        answers, reason = read_answers(given, fields["context"])
    if not {"answers", "detected_answers"} & values.keys() and flag is not True:
        reason = "answers are missing; give a list, an empty one where there is no answer"
    reason = reason or _answer_problem(answers, flag, labelled)
    if reason is not None and (labelled or answers is None):
        bad_rows.add(row.line, reason, column="answers")
        return None
    title = text_of(row.title)
    context = fields["context"]
    return Question(
        id=_id(values, row),
        question=fields["question"],
        context=context,
        answers=answers or (),
        is_impossible=not answers and (flag is True or labelled),
        group=title if title else hashlib.sha1(context.encode(), usedforsecurity=False).hexdigest(),
        path=path,
        line=row.line,
    )


def _answer_problem(
    answers: tuple[AnswerSpan, ...] | None, flag: bool | None, labelled: bool
) -> str | None:
    if answers is None or not labelled:
        return None
    if answers and flag is True:
        return "is_impossible is true, but there are answers; correct one of them"
    if not answers and flag is False:
        return "is_impossible is false, but there is no answer; correct one of them"
    if answers and not any(answer.is_located for answer in answers):
        return f"the answer {answers[0].text!r:.80} does not occur in the passage"
    return None


def _id(values: dict[str, Any], row: _Raw) -> str:
    for name in ("id", "qid"):
        value = values.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_NUMBER:
            value = str(value)
        if isinstance(value, str) and value.strip() and text_problem(value) is None:
            return value
    return f"#{row.line}" if row.place == 1 else f"#{row.line}.{row.place}"


def _kind(value: Any) -> str:
    names = {
        str: "a text",
        list: "a list",
        dict: "an object",
        bool: "true/false",
        type(None): "missing",
    }
    return names.get(type(value), "a number")
