"""One call from a path (file, folder, named data set) to the tables of a source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from litebert.data import glue, named_sources
from litebert.data.arrow_folders import is_arrow_folder, read_arrow_folder
from litebert.data.layouts import (
    find_split_files,
    find_split_folders,
    is_class_folder,
    read_class_folder,
)
from litebert.data.lines import is_fasttext, read_fasttext
from litebert.data.readers import READERS, Reader, ReadOptions, Source
from litebert.data.rows import BadRowPolicy
from litebert.data.tables import Table
from litebert.errors import DataError, SettingsError

__all__ = ["READERS", "ReadOptions", "Reader", "Source", "load_source"]

BUILT_IN = (glue, named_sources)
"""Modules that register readers when they are imported."""

_RECOGNISED = (
    (("seq.in", "label"), "seq_in"),
    (("train/seq.in", "train/label"), "seq_in"),
    (("mapping.txt", "train_text.txt", "train_labels.txt"), "tweeteval"),
)
"""Files of a folder that say which reader it needs."""


def load_source(
    path: Path | str,
    task: str | None = None,
    *,
    eval_path: Path | str | None = None,
    format: str | None = None,  # noqa: A002 - the word users type
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    on_bad_row: BadRowPolicy = "error",
) -> Source:
    """Read a data set.

    Without `task`, a file is a table or fastText lines; a folder holds files named train, dev
    (valid, validation, val, eval) and test, or `train/<class>/*.txt`, or `<class>/*.txt`, or
    what the `datasets` library saved, or the files of a reader that no other data has (`seq.in`,
    `train_text.txt`).

    Args:
        path: file or folder.
        task: name of a reader, for example glue/cola; `READERS` lists them.
        eval_path: separate evaluation file or folder, read the same way; goes over one found.
        format: csv, tsv, jsonl, json or parquet.
        encoding: codec of text files.
        delimiter: one character between cells.
        header: whether the first record names the columns.
        quoting: whether double quotes enclose cells.
        on_bad_row: "error" or "skip".

    Raises:
        DataError: something cannot be read; names file and line.
        SettingsError: unknown task or wrong option.
    """
    path = Path(path)
    options = ReadOptions(format, encoding, delimiter, header, quoting, on_bad_row)
    if task is not None:
        if not path.exists():
            raise DataError("no such file or folder; check the path", path=path)
        source = _read_named(task, path, options)
    elif path.is_dir():
        source = _read_folder(path, options)
    else:
        source = Source(_read_file(path, options))
    if eval_path is None:
        return source
    if task is not None:
        evaluation = _read_named(task, Path(eval_path), options).train
    else:
        other = Path(eval_path)
        evaluation = (
            read_class_folder(other, options)
            if other.is_dir()
            else _read_like(source.train, other, options)
        )
    return replace(source, eval=evaluation)


def _read_named(task: str, path: Path, options: ReadOptions) -> Source:
    """Run a registered reader, or one at a dotted path, whose result is looked at."""
    reader = READERS.get(task)
    try:
        source = reader(path, options)
    except TypeError as error:
        if ":" not in task:
            raise
        raise SettingsError(
            f"task {task!r} cannot be called with (path, options): {error}"
        ) from error
    if not isinstance(source, Source):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SettingsError(
            f"task {task!r} returned a {type(source).__name__}; a reader must return a "
            "litebert.data.readers.Source"
        )
    return source


def _read_like(train: Table, path: Path, options: ReadOptions) -> Table:
    """Read a file that belongs to a training table: without header if that one has none."""
    bare = train.columns == [f"column_{i + 1}" for i in range(len(train.columns))]
    table = _read_file(path, options)
    if bare and table.columns != train.columns and options.header is None:
        return _read_file(path, replace(options, header=False))
    return table


def _read_file(path: Path, options: ReadOptions) -> Table:
    if options.format is None and is_fasttext(path):
        return read_fasttext(path, options)
    return options.read(path)


def _read_folder(folder: Path, options: ReadOptions) -> Source:
    for names, task in _RECOGNISED:
        if all((folder / name).is_file() for name in names):
            return READERS.get(task)(folder, options)
    if is_arrow_folder(folder):
        return read_arrow_folder(folder, options)
    folders = find_split_folders(folder)
    if "train" in folders:
        tables = {split: read_class_folder(path, options) for split, path in folders.items()}
        return _source(tables, "class folders in it")
    files = find_split_files(folder)
    if "train" in files:
        train = _read_file(files["train"], options)
        tables = {
            split: train if split == "train" else _read_like(train, path, options)
            for split, path in files.items()
        }
        return _source(tables, ", ".join(f"{k} = {path.name}" for k, path in files.items()))
    if is_class_folder(folder):
        return Source(read_class_folder(folder, options))
    raise DataError(
        "this folder has no file named train.*, no train/<class>/*.txt and no <class>/*.txt; "
        f"name a file in it, or tell the format with --task ({', '.join(READERS)})",
        path=folder,
    )


def _source(tables: dict[str, Table], what: str) -> Source:
    reason = f"folder {tables['train'].path.parent.name!r}: {what}"
    return Source(tables["train"], tables.get("eval"), tables.get("test"), reasons=(reason,))
