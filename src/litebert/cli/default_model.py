"""Commands whose first word is a model that may be left out, so that the first word is the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from litebert.errors import SettingsError

__all__ = ["default_model", "model_and_rest"]


def default_model() -> str:
    """Return the encoder that is used where none is told.

    Raises:
        SettingsError: this installation holds none.
    """
    from litebert.models import DEFAULT, default

    found = default()
    if found is None:
        raise SettingsError(
            f"no MODEL is told, and this installation does not hold the weights of {DEFAULT}; give a "
            "model folder, a run folder or an export as the first word"
        )
    return found


def model_and_rest(words: Sequence[str | None]) -> tuple[Path, tuple[str | None, ...]]:
    """Return the model and the other words of a command `[MODEL] DATA ...`.

    The model was left out where the first word is missing, "-", or a file that is no graph.

    Args:
        words: as they were given, None for those that were not.

    Raises:
        SettingsError: it was left out, and this installation holds no encoder.
    """
    first = words[0]
    if first is not None and first != "-" and not _is_data(Path(first)):
        return Path(first), tuple(words[1:])
    given = [word for word in words if word is not None]
    if len(given) == len(words):
        raise SettingsError(
            f"{first} is a file and no model; give the model first, or leave it and the last word out"
        )
    rest = [*given, *[None] * (len(words) - 1 - len(given))]
    return Path(default_model()), tuple(rest)


def _is_data(place: Path) -> bool:
    try:
        return place.is_file() and place.suffix != ".onnx"
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return False
