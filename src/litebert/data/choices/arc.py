"""ARC science questions: CSV without a header (question, choices, key), or the published JSON lines."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from litebert.data.choices.labelled import has_labelled_choices, read_labelled
from litebert.data.choices.parts import Part, close_part, make_source
from litebert.data.choices.record import (
    MAX_CHOICES,
    MIN_CHOICES,
    ChoiceRecord,
    position_of_key,
    record_problem,
)
from litebert.data.layouts import SPLIT_NAMES, list_folder
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource
from litebert.data.rows import BadRows, Row
from litebert.data.tables import Table
from litebert.errors import DataError

__all__ = ["SUBSETS", "read_arc"]

SUBSETS: Final = ("challenge", "easy")
_KEY_NAMES: Final = frozenset({"answer", "answerkey", "answer_key", "key", "label"})
_WORDS: Final = {word: part for part, words in SPLIT_NAMES.items() for word in words}
_SUFFIXES: Final = (".jsonl", ".json", ".parquet", ".csv")
"""Preferred first where one part of the data is there in several formats."""


def read_arc(
    path: Path, options: ReadOptions, labelled: bool, *, subset: str = "all"
) -> RecordSource[ChoiceRecord]:
    """Read ARC: a file, or a folder whose files are named by subset and split.

    Keys are A to Z or 1 to 26. Empty choices at the end of a row are left out; a row without
    choices, or whose key names no choice, cannot be used.

    Args:
        path: file or folder.
        options: encoding and policy.
        labelled: whether every question needs an answer.
        subset: "all", "challenge" or "easy".

    Raises:
        DataError: nothing usable, or a bad question under the policy "error".
    """
    files = _find(path, subset) if path.is_dir() else {"train": [path]}
    if not files:
        which = "ARC" if subset == "all" else f"ARC {subset}"
        raise DataError(
            f"no {which} files in this folder; expected names such as arc_easy_dev.csv or "
            "ARC-Easy-Train.jsonl",
            path=path,
        )

    def read(part: str, found: list[Path]) -> Part | None:
        bad_rows = BadRows(found[0] if len(found) == 1 else path, options.on_bad_row)
        records: list[ChoiceRecord] = []
        digests: list[str] = []
        for file in found:
            table = _read_file(file, options)
            digests.append(table.sha256)
            bad_rows.skipped.extend(table.skipped)
            name = _subset_of(file)
            if any(has_labelled_choices(row.values) for row in table.rows):
                records += read_labelled(table, bad_rows, labelled, subset=name)
            else:
                records += _read_rows(table, bad_rows, labelled, name)
        digest = hashlib.sha256("".join(digests).encode()).hexdigest()
        digest = digests[0] if len(digests) == 1 else digest
        return close_part(part, records, bad_rows, sha256=digest, labelled=labelled)

    return make_source(files, read, (f"ARC, {'both subsets' if subset == 'all' else subset}",))


def _find(folder: Path, subset: str) -> dict[str, list[Path]]:
    """Return the files of each part; of one part of a subset in several formats, the first."""
    entries = [*list_folder(folder)]
    entries += [file for entry in entries if entry.is_dir() for file in list_folder(entry)]
    chosen: dict[tuple[str, str], Path] = {}
    for suffix in _SUFFIXES:
        for file in entries:
            words = _words(file)
            part = next((_WORDS[word] for word in words if word in _WORDS), None)
            place = _subset_of(file)
            if part and place and suffix in file.suffixes and subset in ("all", place):
                chosen.setdefault((part, place), file)
    found: dict[str, list[Path]] = {}
    for (part, _), file in sorted(chosen.items()):
        found.setdefault(part, []).append(file)
    return found


def _words(file: Path) -> list[str]:
    """Words of the name, and of the folder after them."""
    names = (file.name, file.parent.name)
    return [word for name in names for word in re.split(r"[-_. ]", name.lower())]


def _subset_of(file: Path) -> str:
    return next((word for word in _words(file) if word in SUBSETS), "")


def _read_file(file: Path, options: ReadOptions) -> Table:
    is_csv = ".csv" in file.suffixes or options.format == "csv"
    return replace(options, format="csv", header=False).read(file) if is_csv else options.read(file)


def _read_rows(table: Table, bad_rows: BadRows, labelled: bool, subset: str) -> list[ChoiceRecord]:
    if not MIN_CHOICES <= len(table.columns) - 2 <= MAX_CHOICES:
        raise DataError(
            f"{len(table.columns)} columns; an ARC table has a question, {MIN_CHOICES} to "
            f"{MAX_CHOICES} choices and the key, or JSON lines with question and choices",
            path=table.path,
            line=1,
        )
    records: list[ChoiceRecord] = []
    for number, row in enumerate(table.rows):
        cells = list(row.values.values())
        if number == 0 and str(cells[-1]).strip().lower() in _KEY_NAMES:
            continue  # a header
        record = _read_row(cells, row, labelled, subset)
        if isinstance(record, str):
            bad_rows.add(row.line, record, path=row.path)
        else:
            records.append(record)
    return records


def _read_row(cells: list[Any], row: Row, labelled: bool, subset: str) -> ChoiceRecord | str:
    question, *choices, key = cells
    while choices and not str(choices[-1]).strip():
        choices.pop()
    if not choices:
        return "all choices are empty; take the row from another copy of the data"
    problem = record_problem("", question, choices)
    if problem is not None:
        return f"{problem[0]}: {problem[1]}"
    label = position_of_key(key, len(choices))
    if label is None and labelled and str(key).strip():
        return f"answer key {key!r:.60} names none of the {len(choices)} choices"
    name = f"{Path(row.path.name).stem}-{row.line}"
    return ChoiceRecord("", question, tuple(choices), label, name, name, row.path, row.line, subset)
