"""Files of questions: JSON, JSON lines or a ZIP of one of them, and which file of a folder is which."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from litebert.data.compressed import MAX_BYTES, MAX_RATIO, RATIO_FLOOR, read_bytes
from litebert.data.encodings import decode_text
from litebert.data.jsonl import parse_json
from litebert.data.readers import ReadOptions
from litebert.data.records import Record, RecordSource, RecordSplit
from litebert.data.rows import BadRows
from litebert.errors import DataError

__all__ = ["JsonFile", "read_json_file", "read_source"]

R = TypeVar("R", bound=Record)
Found = tuple[RecordSplit[R], tuple[str, ...]]
"""The records of a file, and what is to be said about them."""

_ZIP: Final = b"PK\x03\x04"
_DAMAGE: Final = (
    zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, MemoryError, struct.error,
    zlib.error,
)  # fmt: skip
_ENDINGS: Final = re.compile(r"\.(json|jsonl|ndjson)(\.(zip|gz|zst|xz|bz2))?$", re.IGNORECASE)
_ROLES: Final = {
    "train": ("train", "training"),
    "eval": ("dev", "valid", "validation", "val", "eval"),
    "test": ("test",),
}
"""Part of a source -> words in a file name that say so."""


@dataclass(frozen=True, slots=True)
class JsonFile:
    """The parsed values of a file.

    Attributes:
        items: (line, value) of each line, or the one document.
        is_lines: whether the file has one value a line.
        sha256: hex digest of the file as it is on disk.
    """

    items: list[tuple[int, Any]]
    is_lines: bool
    sha256: str


def read_json_file(path: Path, options: ReadOptions, bad_rows: BadRows) -> JsonFile:
    """Read a JSON document or JSON lines, compressed or not.

    Args:
        path: the file.
        options: encoding, and `format` "json" or "jsonl" where the content cannot say it.
        bad_rows: receives lines that are not JSON.

    Raises:
        DataError: the file cannot be read, decoded or parsed.
    """
    data, digest, name = _content(path)
    text, _ = decode_text(data, options.encoding, path)
    lines = options.format == "jsonl" or (
        options.format is None and name.endswith((".jsonl", ".ndjson"))
    )
    if not lines:
        try:
            return JsonFile([(1, parse_json(text, path))], False, digest)
        except DataError as error:
            cause = error.__cause__
            is_more = isinstance(cause, json.JSONDecodeError) and cause.msg == "Extra data"
            if options.format == "json" or not is_more:
                raise
    items: list[tuple[int, Any]] = []
    for number, line in enumerate(text.split("\n" if "\n" in text else "\r"), start=1):
        if not line.strip():
            continue
        try:
            items.append((number, parse_json(line, path, line=number)))
        except DataError as error:
            bad_rows.add(number, str(error).removeprefix(f"{path}:{number}: "))
    return JsonFile(items, True, digest)


def read_source(path: Path, read: Callable[[Path, str], Found[R]]) -> RecordSource[R]:
    """Read a file, or the parts of a folder by the names of its files.

    Args:
        path: file or folder.
        read: reads one file as "train", "eval" or "test".

    Raises:
        DataError: a folder without a file for training, or with several for one part.
    """
    if not path.is_dir():
        split, notes = read(path, "train")
        return RecordSource(split, notes=notes)
    files = _roles(path)
    splits: dict[str, RecordSplit[R]] = {}
    notes: tuple[str, ...] = ()
    for role, file in files.items():
        splits[role], said = read(file, role)
        notes += (f"{role}: {file.name}", *said)
    return RecordSource(splits["train"], splits.get("eval"), splits.get("test"), notes)


def _roles(folder: Path) -> dict[str, Path]:
    try:
        files = sorted(file for file in folder.iterdir() if _ENDINGS.search(file.name))
    except OSError as error:
        raise DataError(f"cannot list the folder: {error}", path=folder) from error
    if not files:
        raise DataError("the folder holds no .json or .jsonl file; name a file", path=folder)
    if len(files) == 1:
        return {"train": files[0]}
    found: dict[str, list[Path]] = {role: [] for role in _ROLES}
    for file in files:
        words = set(re.split(r"[^a-z]+", file.name.lower()))
        for role, names in _ROLES.items():
            if words.intersection(names):
                found[role].append(file)
    for role, several in found.items():
        if len(several) > 1:
            names = ", ".join(file.name for file in several[:4])
            raise DataError(
                f"{len(several)} files could be for {role}: {names}; name one of them", path=folder
            )
    if not found["train"]:
        names = ", ".join(file.name for file in files[:4])
        raise DataError(
            f"no file is named for training (a name with 'train'), there are {names}; name the file "
            "to train on",
            path=folder,
        )
    return {role: several[0] for role, several in found.items() if several}


def _content(path: Path) -> tuple[bytes, str, str]:
    """Return content, sha256 and name without the ending of a compression."""
    try:
        with path.open("rb") as file:
            is_zip = file.read(len(_ZIP)) == _ZIP
            if is_zip:
                file.seek(0)
                return _unzip(path, file)
    except OSError:
        pass  # told in full by what follows
    content = read_bytes(path)
    return content.data, content.sha256, content.name


def _unzip(path: Path, file: IO[bytes]) -> tuple[bytes, str, str]:
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise DataError(
            f"the file has {size:,} bytes, at most {MAX_BYTES:,} are read; unpack it", path=path
        )
    limit = min(MAX_BYTES, max(RATIO_FLOOR, MAX_RATIO * size))
    try:
        with zipfile.ZipFile(file) as archive:
            members = [
                item
                for item in archive.infolist()
                if _ENDINGS.search(item.filename) and not item.filename.startswith("__MACOSX")
            ]
            if len(members) != 1:
                raise DataError(
                    f"the ZIP archive holds {len(members)} JSON files, expected one; unpack it and "
                    "name the file",
                    path=path,
                )
            with archive.open(members[0]) as stream:
                data = stream.read(limit + 1)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except DataError:
        raise
    except _DAMAGE as error:
        raise DataError(
            f"the ZIP archive is damaged or encrypted ({error}); fetch it again or unpack it",
            path=path,
        ) from error
    if len(data) > limit:
        raise DataError(
            f"{size:,} compressed bytes become more than {limit:,}; if the file is honest, unpack it "
            "yourself",
            path=path,
        )
    if not data:
        raise DataError("the file is empty after decompression", path=path)
    return data, digest, members[0].filename.lower()
