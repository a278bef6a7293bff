"""Readers of multiple-choice data by name, and the one that finds out what lies at a path."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from litebert.data.choices.arc import SUBSETS, read_arc
from litebert.data.choices.commonsense import read_commonsense_qa, read_jcommonsenseqa
from litebert.data.choices.dream import read_dream
from litebert.data.choices.race import LEVELS, is_race, read_race
from litebert.data.choices.record import ChoiceRecord
from litebert.data.choices.table import read_choice_table
from litebert.data.compressed import peek_bytes
from litebert.data.layouts import find_split_files, list_folder
from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource
from litebert.errors import DataError

__all__ = ["CHOICE_READERS", "ChoiceReader", "read_choices"]

ChoiceReader = Callable[[Path, ReadOptions, bool], RecordSource[ChoiceRecord]]


def read_choices(path: Path, options: ReadOptions, labelled: bool) -> RecordSource[ChoiceRecord]:
    """Read questions of any known layout: RACE, DREAM, ARC, or a table.

    Raises:
        DataError: no such file, nothing usable, or a bad question under the policy "error".
        SettingsError: a told format, encoding or column that does not exist.
    """
    if not path.exists():
        raise DataError("no such file or folder; check the path", path=path)
    if options.columns and not options.columns.is_remembered:
        return read_choice_table(path, options, labelled)  # whoever names columns has a table
    if is_race(path):
        return read_race(path, options, labelled)
    if _is_dream(path):
        return read_dream(path, options, labelled)
    if _is_arc(path):
        return read_arc(path, options, labelled)
    return read_choice_table(path, options, labelled)


def _is_dream(path: Path) -> bool:
    """Tell a list whose items are lists, in `.json` files."""
    if path.is_dir():
        path = next(iter(find_split_files(path).values()), path)
    if path.is_dir() or ".json" not in path.name.lower():
        return False
    try:
        start = peek_bytes(path, 64).removeprefix(b"\xef\xbb\xbf")
    except DataError:
        return False
    return b"".join(start.split()).startswith(b"[[")


def _is_arc(path: Path) -> bool:
    """Tell files named after ARC and one of its subsets."""
    files = list_folder(path) if path.is_dir() else [path]
    return any("arc" in name and any(word in name for word in SUBSETS) for name in _names(files))


def _names(files: list[Path]) -> list[str]:
    return [file.name.lower() for file in files]


CHOICE_READERS: Final[dict[str, tuple[str, ChoiceReader]]] = {
    "choice": ("questions with choices: a table, or any layout below", read_choices),
    "race": ("RACE: folders or tar files of passages", read_race),
    "dream": ("DREAM: train.json, dev.json, test.json", read_dream),
    "arc": ("ARC: arc_easy_dev.csv, ARC-Challenge-Train.jsonl, ...", read_arc),
    "commonsense_qa": ("CommonsenseQA: JSON lines", read_commonsense_qa),
    "jcommonsenseqa": ("JCommonsenseQA: JSON lines", read_jcommonsenseqa),
} | {
    f"race/{level}": (f"RACE, {level} school only", cast("Any", partial(read_race, level=level)))
    for level in LEVELS
} | {
    f"arc/{name}": (f"ARC, {name} set only", cast("Any", partial(read_arc, subset=name)))
    for name in SUBSETS
}  # fmt: skip
"""Name -> one line of help, and the reader."""
