"""Encoders that come with the package, by name: `litebert-small-en` wherever a model folder is taken.

A folder of that name in the working directory wins, as any path does. Needs no torch.
"""

from __future__ import annotations

import errno
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from litebert.errors import CheckpointError, SettingsError

__all__ = ["DEFAULT", "NAMES", "available", "default", "is_name", "locate", "path", "set_folder"]

NAMES: Final = ("litebert-small-en", "litebert-tiny-en")
"""Encoders that a release of the package holds."""
DEFAULT: Final = "litebert-small-en"
"""The one that training, embedding and searching take where none is told."""

_OWN: Final = Path(__file__).resolve().parent
_places: list[Path] = [_OWN]
"""The folder that is looked in, alone in a list so that it can be exchanged."""


def set_folder(folder: str | Path | None) -> None:
    """Take named encoders from the sub-folders of another folder; None: from the package again.

    Raises:
        SettingsError: there is no such folder.
    """
    place = _OWN if folder is None else Path(folder).absolute()
    if not place.is_dir():
        raise SettingsError(f"the folder of named encoders {place} does not exist; make it first")
    _places[0] = place


def available() -> tuple[str, ...]:
    """Return the names that can be used here, in order; none in a checkout without weights."""
    return tuple(
        sorted(entry.parent.name for entry in _places[0].glob("*/config.json") if entry.is_file())
    )


def default() -> str | None:
    """Return the name of the encoder that is used where none is told, if it is here."""
    return DEFAULT if DEFAULT in available() else None


def is_name(source: str | Path) -> bool:
    """Whether `source` means an encoder of the package: such a name, and no folder of it here."""
    return str(source) in available() and not _is_there(Path(source))


def path(name: str) -> Path:
    """Return the folder of a named encoder; it is not to be written to.

    Raises:
        CheckpointError: no such name, or this installation does not hold it.
    """
    here = available()
    if name in here:
        return _places[0] / name
    if name in NAMES:
        known = ", ".join(here) or "none"
        raise CheckpointError(
            f"this installation does not hold its weights (here: {known}); install a release of "
            "litebert, or make them with `make flagship`",
            path=Path(name),
        ) from _not_found(name)
    near = get_close_matches(name[:80], {*NAMES, *here}, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(here or NAMES)}"
    raise CheckpointError(
        f"no encoder of this name comes with litebert; {hint}", path=Path(name[:200])
    ) from _not_found(name)


def locate(source: str | Path) -> Path:
    """Return the folder that a person means by a path or a name; a path that exists wins.

    What is neither is returned as it is, for the reader of folders to refuse.

    Raises:
        CheckpointError: nothing is there, and the word is a name or almost one.
    """
    found = Path(source)
    name = str(source)
    if not name or "/" in name or os.sep in name or _is_there(found):
        return found
    names = {*NAMES, *available()}
    if name in names or get_close_matches(name[:80], names, n=1, cutoff=0.75):
        return path(name)
    return found


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except (OSError, ValueError):  # no file name at all: too long, or with a NUL
        return False


def _not_found(name: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
