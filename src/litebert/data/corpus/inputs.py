"""Paths to the list of files of a corpus: folders are walked in one fixed order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from litebert.errors import DataError

__all__ = ["corpus_files"]


def corpus_files(paths: Sequence[Path | str]) -> tuple[Path, ...]:
    """Return the files of a corpus, folders walked, sorted by name within each folder.

    Names that start with a dot are left out, links to folders are not followed, and a file that
    is reached twice counts once. The same tree gives the same list on every machine.

    Raises:
        DataError: a path does not exist or cannot be listed, or there is no file at all.
    """
    if not paths:
        raise DataError("no corpus was given; name at least one file or folder of text")
    found: dict[Path, Path] = {}
    for given in paths:
        path = Path(given)
        try:
            if path.is_dir():
                for file in _walk(path):
                    found.setdefault(file.resolve(), file)
            else:
                path.stat()
                found.setdefault(path.resolve(), path)
        except FileNotFoundError as error:
            raise DataError("no such file or folder; check the path", path=path) from error
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links; NUL in the path
            raise DataError(f"cannot be read: {error}", path=path) from error
    if not found:
        raise DataError("the folder holds no files; name a folder with text", path=Path(paths[0]))
    return tuple(found.values())


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        items = sorted(entries, key=lambda entry: entry.name)
    for entry in items:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path))
        elif not _leads_to_folder(entry):
            yield Path(entry.path)


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        raise DataError(
            f"a link that leads nowhere ({error.strerror}); remove it", path=Path(entry.path)
        ) from error
