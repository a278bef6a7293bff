"""DREAM: dialogues with questions, one JSON list a part of the data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from litebert.data.choices.parts import Part, close_part, make_source
from litebert.data.choices.record import ChoiceRecord, record_problem
from litebert.data.compressed import read_bytes
from litebert.data.encodings import decode_text
from litebert.data.jsonl import parse_json
from litebert.data.layouts import find_split_files
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource
from litebert.data.rows import BadRows
from litebert.errors import DataError

__all__ = ["read_dream"]


def read_dream(path: Path, options: ReadOptions, labelled: bool) -> RecordSource[ChoiceRecord]:
    """Read DREAM: a file, or a folder with train.json, dev.json and test.json.

    Each item is `[turns, [{question, choice, answer}, ...], id]`. The turns are joined by newlines;
    the answer is the text of a choice. The line of a record is the number of its dialogue.

    Raises:
        DataError: nothing usable, or a bad question under the policy "error".
    """
    files = find_split_files(path) if path.is_dir() else {"train": path}
    if not files:
        raise DataError("no train.json, dev.json or test.json in this folder", path=path)

    def read(part: str, file: Path) -> Part | None:
        content = read_bytes(file)
        text, _ = decode_text(content.data, options.encoding, file)
        document = parse_json(text, file)
        if not isinstance(document, list):
            raise DataError(
                f"expected a list of dialogues, got a {type(document).__name__}", path=file, line=1
            )
        bad_rows = BadRows(file, options.on_bad_row)
        records = [
            record
            for number, item in enumerate(cast("list[Any]", document), start=1)
            for record in _read_dialogue(item, file, number, bad_rows, labelled)
        ]
        return close_part(part, records, bad_rows, sha256=content.sha256, labelled=labelled)

    return make_source(files, read, ("DREAM dialogues",))


def _read_dialogue(
    item: Any, path: Path, number: int, bad_rows: BadRows, labelled: bool
) -> Iterator[ChoiceRecord]:
    match item:
        case [list(turns), list(questions), *rest]:
            pass
        case _:
            bad_rows.add(number, f"dialogue {number}: expected [turns, questions, id]")
            return
    spoken = cast("list[Any]", turns)
    if not all(isinstance(turn, str) for turn in spoken):
        bad_rows.add(number, f"dialogue {number}: a turn is not a text")
        return
    name = str(rest[0])[:80] if rest and isinstance(rest[0], str | int) else f"dialogue-{number}"
    context = "\n".join(spoken)
    for place, entry in enumerate(cast("list[Any]", questions), start=1):
        record = _read_question(entry, context, labelled)
        if isinstance(record, str):
            bad_rows.add(number, f"dialogue {number}, question {place}: {record}")
            continue
        question, choices, label = record
        yield ChoiceRecord(context, question, choices, label, f"{name}#{place}", name, path, number)


def _read_question(
    entry: Any, context: str, labelled: bool
) -> tuple[str, tuple[str, ...], int | None] | str:
    """Return question, choices and the position of the answer, or what is wrong."""
    if not isinstance(entry, dict):
        return f"expected an object, got a {type(entry).__name__}"
    table = cast("dict[str, Any]", entry)
    question, choices, answer = (table.get(key) for key in ("question", "choice", "answer"))
    if not isinstance(choices, list):
        return "the key 'choice' must hold a list of texts"
    items = cast("list[Any]", choices)
    problem = record_problem(context, question, items)
    if problem is not None:
        return f"{problem[0]}: {problem[1]}"
    places = [i for i, choice in enumerate(items) if choice == answer] or [
        i for i, choice in enumerate(items) if choice.strip() == str(answer).strip()
    ]
    if not places and labelled and answer not in (None, ""):
        return f"the answer {answer!r:.60} is none of the choices"
    return str(question), tuple(items), places[0] if places else None
