"""Folders of data: files named after splits, and one folder a class."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from litebert.data.compressed import COMPRESSED_SUFFIXES, read_bytes
from litebert.data.encodings import decode_text
from litebert.data.labels import natural_key
from litebert.data.readers import ReadOptions
from litebert.data.rows import BadRows, Row, text_problem
from litebert.data.tables import Table
from litebert.errors import DataError

SPLIT_NAMES = {
    "train": ("train", "training"),
    "eval": ("dev", "valid", "validation", "val", "eval"),
    "test": ("test", "testing"),
}
_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".txt", ".ft")
_UNLABELLED_FOLDERS = frozenset(("unsup", "unlabeled", "unlabelled"))
_MAX_FILES = 2_000_000


def find_split_files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder that are named after splits: train, eval, test.

    `train.csv` is preferred to `train-00000.csv`.

    Raises:
        DataError: several files could be one split, or the folder cannot be listed.
    """
    found: dict[str, Path] = {}
    for split, names in SPLIT_NAMES.items():
        candidates = [path for path in list_folder(folder) if _matches(path, names, exact=True)]
        candidates = candidates or [
            path for path in list_folder(folder) if _matches(path, names, exact=False)
        ]
        if len(candidates) > 1:
            shown = ", ".join(path.name for path in candidates[:5])
            raise DataError(
                f"{len(candidates)} files could be the {split} split ({shown}); name the files "
                "themselves, or keep one of them in the folder",
                path=folder,
            )
        if candidates:
            found[split] = candidates[0]
    return found


def find_split_folders(folder: Path) -> dict[str, Path]:
    """Return the subfolders that are named after splits and hold class folders."""
    found: dict[str, Path] = {}
    for split, names in SPLIT_NAMES.items():
        for name in names:
            if split not in found and is_class_folder(folder / name):
                found[split] = folder / name
    return found


def is_class_folder(folder: Path) -> bool:
    """Tell whether a folder has at least two subfolders with .txt files in them."""
    return folder.is_dir() and len(_class_folders(folder)) >= 2


def read_class_folder(folder: Path, options: ReadOptions) -> Table:
    """Read `<class>/*.txt`, one example a file, as columns `text` and `label`.

    Files come in order of their names, numbers by value. Folders named unsup or unlabeled are
    left out, with a note.

    Raises:
        DataError: a file cannot be used (policy "error"), or there are none.
    """
    bad_rows = BadRows(folder, options.on_bad_row)
    rows: list[Row] = []
    digest = sha256()
    encodings: set[str] = set()
    for class_folder in _class_folders(folder):
        for path in _text_files(class_folder):
            try:
                content = read_bytes(path)
                text, encoding = decode_text(content.data, options.encoding, path)
            except DataError as error:
                bad_rows.add(1, str(error).removeprefix(f"{path}: "), path=path)
                continue
            problem = text_problem(text)
            if problem is not None:
                bad_rows.add(1, problem, path=path)
                continue
            digest.update(f"{class_folder.name}/{path.name}:{content.sha256}\n".encode())
            encodings.add(encoding)
            rows.append(Row({"text": text, "label": class_folder.name}, path, 1))
    if not rows:
        raise DataError(f"no usable text files ({len(bad_rows.skipped):,} skipped)", path=folder)
    ignored = [f.name for f in list_folder(folder) if f.is_dir() and f.name in _UNLABELLED_FOLDERS]
    notes = tuple(f"folder {name!r} has no labels and is left out" for name in ignored)
    return Table(
        folder,
        ["text", "label"],
        rows,
        bad_rows.skipped,
        "folder",
        ", ".join(sorted(encodings)),
        digest.hexdigest(),
        (f"one file an example, classes are the names of {folder.name!r}'s subfolders", *notes),
    )


def list_folder(folder: Path) -> list[Path]:
    """Return the visible entries of a folder in natural order of their names.

    Raises:
        DataError: the folder cannot be listed or has absurdly many entries.
    """
    try:
        entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError as error:
        raise DataError(f"cannot list the folder: {error}", path=folder) from error
    if len(entries) > _MAX_FILES:
        raise DataError(
            f"{len(entries):,} entries, at most {_MAX_FILES:,} are read; use one table file",
            path=folder,
        )
    return sorted(entries, key=lambda path: (natural_key(path.name), path.name))


def _class_folders(folder: Path) -> list[Path]:
    return [
        path
        for path in list_folder(folder)
        if path.is_dir() and path.name not in _UNLABELLED_FOLDERS and _has_text_files(path)
    ]


def _has_text_files(folder: Path) -> bool:
    try:
        return any(path.suffix == ".txt" for path in folder.iterdir())
    except OSError as error:
        raise DataError(f"cannot list the folder: {error}", path=folder) from error


def _text_files(folder: Path) -> list[Path]:
    return [path for path in list_folder(folder) if path.suffix == ".txt" and path.is_file()]


def _matches(path: Path, names: tuple[str, ...], *, exact: bool) -> bool:
    name = path.name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    stem, suffix = Path(name).stem, Path(name).suffix
    if suffix not in _SUFFIXES or not path.is_file():
        return False
    return stem in names if exact else re.split(r"[-_.]", stem)[0] in names
