"""Where an export may be written: nothing of anybody else's is ever replaced."""

from __future__ import annotations

from pathlib import Path

from litebert.errors import SettingsError

__all__ = ["checked_place"]


def checked_place(out: Path, source: Path, marker: str, what: str, *, overwrite: bool) -> Path:
    """Return where to write, resolved.

    Args:
        out: what was told: new, empty, or with `overwrite` an older one.
        source: the model folder, which must not be written into.
        marker: file, as a path in the folder, that tells an older one.
        what: the older one in words, such as "an export".
        overwrite: whether an older one may be replaced.

    Raises:
        SettingsError: it holds something that must not be replaced.
    """
    try:
        place, model = out.resolve(), source.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise SettingsError(f"--out cannot be a folder: {error}") from error
    if place == model or model.is_relative_to(place):
        raise SettingsError(f"--out {out} is the model folder, or around it; choose another folder")
    if not place.exists():
        return place
    if not place.is_dir():
        raise SettingsError(f"--out {out} is no folder; choose another place")
    if not any(place.iterdir()):
        return place
    if not (place / marker).is_file():
        raise SettingsError(f"--out {out} holds other files; choose a new or empty folder")
    if not overwrite:
        raise SettingsError(f"--out {out} holds {what} already; --overwrite replaces it")
    return place
