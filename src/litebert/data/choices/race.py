"""RACE: one JSON object a passage, in the folders or archives that it is published in.

`{train,dev,test}/{middle,high}/*.txt`, loose or inside tar files of any compression. Each file holds
`article, questions, options, answers, id`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

from litebert.data.choices.parts import Part, close_part, make_source
from litebert.data.choices.record import ChoiceRecord, position_of_key, record_problem
from litebert.data.compressed import MAX_BYTES, read_bytes
from litebert.data.corpus.archives import tar_members
from litebert.data.corpus.document import Fault
from litebert.data.corpus.faults import Refused, Reporter
from litebert.data.corpus.streams import Allowance, decompressed, stream_of
from litebert.data.encodings import decode_text
from litebert.data.jsonl import parse_json
from litebert.data.layouts import SPLIT_NAMES, list_folder
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource
from litebert.data.rows import BadRows
from litebert.errors import DataError

__all__ = ["LEVELS", "is_race", "read_race"]

LEVELS: Final = ("middle", "high")
MAX_FILES: Final = 1_000_000
"""Most members of one archive."""
_DEPTH: Final = 4
"""Folders inside folders that are looked into: RACE/train/high is 3."""
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst")
_TEXTS: Final = (".txt", ".json")
_MAX_PASSAGE_BYTES: Final = 1 << 20
"""A larger file is no passage; RACE's largest has 10 kB."""
_KEYS: Final = ("article", "questions", "options")
_WORDS: Final = {word: part for part, words in SPLIT_NAMES.items() for word in words}

Content = tuple[Path, str, bytes]
"""File (a path inside the archive for members), its level or "", and its bytes."""


def read_race(
    path: Path, options: ReadOptions, labelled: bool, *, level: str = "all"
) -> RecordSource[ChoiceRecord]:
    """Read RACE from a folder, an archive, or the file of one passage.

    The subset of a record is "middle" or "high". Without a train part the first part there is
    takes its place.

    Args:
        path: folder of passages or archives, one archive, or one passage.
        options: encoding and policy.
        labelled: whether every question needs an answer.
        level: "all", "middle" or "high".

    Raises:
        DataError: nothing usable, or a bad question under the policy "error".
    """
    found: dict[str, list[Content]] = {}
    bad_rows: dict[str, BadRows] = {}
    seen: set[tuple[str, str, str, bytes]] = set()
    for part, content in _contents(path, options):
        file, place, data = content
        key = (part, place, file.name, hashlib.sha256(data).digest())
        if key not in seen:  # an archive may lie beside what was unpacked from it
            seen.add(key)
            found.setdefault(part, []).append(content)
    if not found:
        raise DataError(
            "no RACE files here; expected train/, dev/ and test/ with middle/ and high/ and .txt "
            "files in them, or tar files of these",
            path=path,
        )

    def read(part: str, contents: list[Content]) -> Part | None:
        rows = bad_rows.setdefault(part, BadRows(path, options.on_bad_row))
        records = [
            record
            for file, place, data in contents
            for record in _read_passage(data, file, place, options, rows, labelled)
            if level in ("all", record.subset)
        ]
        digest = hashlib.sha256()
        for file, place, data in contents:
            digest.update(f"{place}/{file.name}:".encode() + hashlib.sha256(data).digest())
        return close_part(part, records, rows, sha256=digest.hexdigest(), labelled=labelled)

    what = "middle and high" if level == "all" else f"{level} only"
    return make_source(found, read, (f"RACE, {what}",))


def is_race(path: Path) -> bool:
    """Tell whether a path looks like RACE: tar files, level folders, or the file of a passage."""
    if path.is_dir():
        return any(
            _is_archive(entry) or (entry.is_dir() and entry.name.lower() in {*LEVELS, "race"})
            for entry in list_folder(path)
        ) or any((path / part / place).is_dir() for part in _WORDS for place in LEVELS)
    if _is_archive(path):
        return True
    return path.suffix.lower() in _TEXTS and _looks_like_passage(path)


def _looks_like_passage(path: Path) -> bool:
    try:
        if path.stat().st_size > _MAX_PASSAGE_BYTES:
            return False
        text, _ = decode_text(read_bytes(path).data, None, path)
        document = parse_json(text, path)
    except (DataError, OSError):
        return False
    return isinstance(document, dict) and all(key in document for key in _KEYS)


def _is_archive(path: Path) -> bool:
    return path.is_file() and path.name.lower().endswith(_ARCHIVES)


def _contents(path: Path, options: ReadOptions) -> Iterator[tuple[str, Content]]:
    """Yield (part, content) of every passage, archives looked into."""
    if path.is_dir():
        for file in _walk(path, _DEPTH):
            inside = PurePosixPath(path.name, *file.relative_to(path).parts)
            if _is_archive(file):
                yield from _members(file, options)
            elif _is_text(inside):
                yield _part_of(inside), (file, _level_of(inside), read_bytes(file).data)
    elif _is_archive(path):
        yield from _members(path, options)
    else:
        inside = PurePosixPath(*path.absolute().parts[-3:])
        yield _part_of(inside), (path, _level_of(inside), read_bytes(path).data)


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    for entry in list_folder(folder):
        if entry.is_file():
            yield entry
        elif entry.is_dir() and depth > 1:
            yield from _walk(entry, depth - 1)


def _members(path: Path, options: ReadOptions) -> Iterator[tuple[str, Content]]:
    """Yield the passages of a tar file; nothing is unpacked to disk.

    Raises:
        DataError: damaged or hostile.
    """

    def ignore(fault: Fault) -> None:
        """Links and devices are no passages."""

    report = Reporter(path, ignore, is_strict=options.on_bad_row == "error")
    try:
        with path.open("rb") as file:
            allowance = Allowance(path.stat().st_size, MAX_BYTES)
            stream = decompressed(stream_of(file), allowance)
            for name, content in tar_members(stream, MAX_FILES, report):
                inside = PurePosixPath(name)
                if not _is_text(inside):
                    continue
                outer = PurePosixPath(path.name, *inside.parts)
                yield _part_of(outer), (path / name, _level_of(outer), content.read())
    except Refused as error:
        raise report.error(error.reason) from error
    except OSError as error:
        raise DataError(f"cannot read the archive: {error}", path=path) from error


def _is_text(inside: PurePosixPath) -> bool:
    return inside.suffix.lower() in _TEXTS and not inside.name.startswith(".")


def _words(inside: PurePosixPath) -> list[str]:
    """Words of the folders and of the archive's name, the nearest to the file first."""
    folders = reversed(inside.parts[:-1])
    return [word for part in folders for word in part.lower().replace(".", "-").split("-")]


def _part_of(inside: PurePosixPath) -> str:
    return next((_WORDS[word] for word in _words(inside) if word in _WORDS), "train")


def _level_of(inside: PurePosixPath) -> str:
    return next((word for word in _words(inside) if word in LEVELS), "")


def _read_passage(
    data: bytes, path: Path, level: str, options: ReadOptions, bad_rows: BadRows, labelled: bool
) -> Iterator[ChoiceRecord]:
    """Yield the questions of one passage; their line is their number, from 1."""
    try:
        text, _ = decode_text(data, options.encoding, path)
        document = parse_json(text, path)
    except DataError as error:
        reason = str(error).removeprefix(f"{path}:").removeprefix(f"{error.line}:").strip()
        bad_rows.add(error.line or 1, reason, path=path)
        return
    problem = _document_problem(document)
    if problem is not None:
        bad_rows.add(1, problem, path=path)
        return
    table = cast("dict[str, Any]", document)
    name = table.get("id") or path.name
    name = name if isinstance(name, str) else str(name)[:80]
    level = level or next((word for word in LEVELS if name.startswith(word)), "")
    answers: list[Any] = table.get("answers") or [None] * len(table["questions"])
    questions = zip(table["questions"], table["options"], answers, strict=True)
    for number, (question, choices, key) in enumerate(questions, start=1):
        items = cast("list[object]", choices) if isinstance(choices, list) else []
        found = record_problem(table["article"], question, items)
        if found is not None:
            bad_rows.add(number, found[1], column=found[0], path=path)
            continue
        label = position_of_key(key, len(items)) if isinstance(key, str) else None
        if label is None and labelled and key not in (None, ""):
            bad_rows.add(
                number,
                f"answer {key!r:.60} names none of the {len(items)} choices; allowed: A, B, ...",
                path=path,
            )
            continue
        yield ChoiceRecord(
            context=table["article"],
            question=question,
            choices=tuple(cast("list[str]", items)),
            label=label,
            id=f"{name}#{number}",
            group=name,
            path=path,
            line=number,
            subset=level,
        )


def _document_problem(document: Any) -> str | None:
    if not isinstance(document, dict):
        return f"the file holds a {type(document).__name__}, not an object with a passage"
    table = cast("dict[str, Any]", document)
    missing = [key for key in _KEYS if key not in table]
    if missing:
        return f"the passage lacks {', '.join(missing)}; a RACE file has article, questions, options, answers"
    questions, options, answers = table["questions"], table["options"], table.get("answers")
    for key, value in (("questions", questions), ("options", options), ("answers", answers)):
        if not isinstance(value, list) and not (key == "answers" and value is None):
            return f"{key} is a {type(value).__name__}, not a list"
    counts = {len(value) for value in (questions, options, answers or questions)}
    if len(counts) != 1:
        return (
            f"{len(questions)} questions, {len(options)} lists of options and "
            f"{len(answers or ())} answers; there must be as many of each"
        )
    return None
