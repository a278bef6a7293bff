"""A file or folder of tagged texts, of any known format, to records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from litebert.data.compressed import read_bytes
from litebert.data.encodings import decode_text
from litebert.data.jsonl import parse_json, read_json
from litebert.data.layouts import list_folder
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource, RecordSplit
from litebert.data.rows import BadRows
from litebert.data.tagged.conll import has_columns, read_columns
from litebert.data.tagged.exports import (
    is_label_studio,
    is_spacy,
    read_label_studio,
    read_spacy,
)
from litebert.data.tagged.offsets import OffsetTally, SpanFaultError
from litebert.data.tagged.record import TaggedText
from litebert.data.tagged.sentences import records_of_sentences
from litebert.data.tagged.slots import INPUTS, read_slot_folder
from litebert.data.tagged.spans_jsonl import make_record, read_span_objects
from litebert.errors import DataError, SettingsError

__all__ = ["read_intents_and_slots", "read_tagged"]

_ROLES: Final[dict[str, str]] = {
    "train": "train", "training": "train",
    "dev": "eval", "devel": "eval", "development": "eval", "valid": "eval", "validation": "eval",
    "val": "eval", "eval": "eval", "testa": "eval",
    "test": "test", "testb": "test",
}  # fmt: skip
_FORMATS: Final = ("jsonl", "json", "tsv", "conll")
_NO_DATA = re.compile(r"(?i)(readme|licen[cs]e|copying|notice|manifest|sha256sums)\b")
_JSON_START = re.compile(r'\{\s*["}]|\[\s*[\[{\]"]|\[\s*null')


def read_tagged(path: Path, options: ReadOptions, labelled: bool) -> RecordSource[TaggedText]:
    """Read texts with spans: CoNLL columns, JSON lines, Label Studio, doccano, spaCy, `seq.in`.

    A folder gives its train, dev and test files by their names (`esp.train`, `dev.jsonl`,
    `emerging.test.annotated`), or the folders train, valid and test with a `seq.in` each.

    Args:
        path: file or folder.
        options: encoding, policy, and the format where it must be told.
        labelled: tags or spans are needed.

    Raises:
        DataError: nothing usable there, or a bad record under the policy "error".
        SettingsError: a format that holds no tags.
    """
    if options.format is not None and options.format not in _FORMATS:
        raise SettingsError(
            f"format {options.format!r} holds no tagged texts; allowed: {', '.join(_FORMATS)} (csv "
            "tables can be written as JSON lines with a text and its spans)"
        )
    if path.name == INPUTS and path.is_file():
        path = path.parent
    parts = _parts(path)
    splits: dict[str, RecordSplit[TaggedText]] = {}
    notes: list[str] = []
    for role, part in parts.items():
        split, found = (
            read_slot_folder(part, options, labelled=labelled)
            if part.is_dir()
            else _read_file(part, options, labelled=labelled)
        )
        if not split.records:
            first = f"; the first: {split.skipped[0].reason}" if split.skipped else ""
            raise DataError(
                f"no usable text ({len(split.skipped):,} left out{first})",
                path=part,
                line=split.skipped[0].line if split.skipped else None,
            )
        splits[role] = split
        notes.extend(note for note in found if note not in notes)
    if len(splits) > 1:
        notes.append("files: " + ", ".join(f"{role} {splits[role].path.name}" for role in splits))
    return RecordSource(splits["train"], splits.get("eval"), splits.get("test"), tuple(notes))


def read_intents_and_slots(
    path: Path, options: ReadOptions, labelled: bool
) -> RecordSource[TaggedText]:
    """Read as `read_tagged` texts that have an intent too: `seq.in` folders, or JSON lines.

    Raises:
        DataError: as `read_tagged`, or a text without an intent.
        SettingsError: as `read_tagged`.
    """
    source = read_tagged(path, options, labelled)
    for split in (source.train, source.eval, source.test):
        for record in split.records if split is not None and labelled else ():
            if record.intent is None:
                raise DataError(
                    "this text has no intent; give one under the name 'intent', or use "
                    "--task tagging for spans alone",
                    path=record.path,
                    line=record.line,
                )
    return source


def _read_file(
    path: Path, options: ReadOptions, *, labelled: bool
) -> tuple[RecordSplit[TaggedText], list[str]]:
    content = read_bytes(path)
    text, _ = decode_text(content.data, options.encoding, path)
    bad_rows = BadRows(path, options.on_bad_row)
    if options.format in ("json", "jsonl") or (
        options.format is None and _JSON_START.match(text.lstrip())
    ):
        records, notes = _read_json(text, bad_rows, path, options, labelled=labelled)
    else:
        newline = "\n" if "\n" in text else "\r"
        lines = [line.removesuffix("\r") for line in text.split(newline)]
        if not labelled and options.format not in ("conll", "tsv") and not has_columns(lines):
            records, notes = _read_texts(lines, bad_rows, path)
        else:
            sentences, notes = read_columns(lines, bad_rows, path, labelled=labelled)
            records, more = records_of_sentences(sentences, bad_rows, path, labelled=labelled)
            notes += more
    return RecordSplit(records, path, content.sha256, tuple(bad_rows.skipped)), notes


def _read_texts(
    lines: Sequence[str], bad_rows: BadRows, path: Path
) -> tuple[list[TaggedText], list[str]]:
    """Read one text a line, for prediction."""
    records: list[TaggedText] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            records.append(make_record(text, None, number, path, "code points", OffsetTally()))
        except SpanFaultError as error:
            bad_rows.add(number, str(error))
    return records, [f"{path.name}: one text a line"]


def _read_json(
    text: str, bad_rows: BadRows, path: Path, options: ReadOptions, *, labelled: bool
) -> tuple[list[TaggedText], list[str]]:
    is_lines = options.format == "jsonl" or (options.format is None and _is_lines(text))
    if not is_lines:  # one line alone may be either
        document: Any = parse_json(text, path)
        if is_label_studio(document):
            return read_label_studio(document, bad_rows, path, labelled=labelled)
        if is_spacy(document):
            return read_spacy(document, bad_rows, path, labelled=labelled)
    _, rows = read_json(text, bad_rows, path, lines=is_lines or None)
    return read_span_objects(rows, bad_rows, path, labelled=labelled)


def _is_lines(text: str) -> bool:
    """Tell JSON lines: the first two filled lines begin objects."""
    filled = [line.lstrip() for line in text.split("\n", 50)[:50] if line.strip()]
    return len(filled) > 1 and all(line.startswith("{") for line in filled[:2])


def _parts(path: Path) -> dict[str, Path]:
    """Return role -> file or folder; always with "train"."""
    if not path.is_dir():
        return {"train": path}
    if (path / INPUTS).is_file():
        return {"train": path}
    items = list_folder(path)
    folders = [item for item in items if item.is_dir() and (item / INPUTS).is_file()]
    files = [item for item in items if item.is_file() and not _NO_DATA.match(item.name)]
    candidates = folders or files
    if len(candidates) == 1:
        return {"train": candidates[0]}
    found: dict[str, list[Path]] = {}
    for item in candidates:
        role = _role(item.name)
        if role is not None:
            found.setdefault(role, []).append(item)
    if "train" not in found:
        raise DataError(
            f"no training file among {_names(candidates)}; give it a name with 'train' in it, or "
            "name the file instead of the folder",
            path=path,
        )
    return {
        role: _only(role, found[role], path) for role in ("train", "eval", "test") if role in found
    }


def _role(name: str) -> str | None:
    words = re.split(r"[._\-\s]+", name.lower())
    for word in words:
        if word in _ROLES:
            return _ROLES[word]
    return "train" if any(word.endswith("train") for word in words) else None


def _only(role: str, items: Sequence[Path], folder: Path) -> Path:
    best = [item for item in items if "annotated" in item.name.lower()] or list(items)
    if len(best) > 1:
        raise DataError(
            f"several files for {role}: {_names(best)}; put each data set into a folder of its own, "
            "or name one file",
            path=folder,
        )
    return best[0]


def _names(items: Sequence[Path]) -> str:
    return ", ".join(item.name for item in items[:6]) + (", ..." if len(items) > 6 else "")
