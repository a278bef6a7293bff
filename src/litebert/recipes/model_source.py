"""What a setting `source` means that is neither a preset nor a word: a folder, or a named encoder."""

from __future__ import annotations

import errno
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from litebert.errors import CheckpointError
from litebert.model.presets import PRESETS
from litebert.models import DEFAULT, locate
from litebert.recipes.run_folder import model_folder

__all__ = ["source_folder"]

_SHOWN: Final = ("tiny", "small", "albert-base-v2")


def source_folder(source: str, *, words: tuple[str, ...] = ()) -> Path:
    """Return the model folder that a `source` means.

    Args:
        source: path of a model or run folder, or the name of an encoder that comes with litebert.
        words: what else the command takes, for the message.

    Raises:
        CheckpointError: nothing of that name, or no usable folder.
    """
    found = locate(source)
    if "/" not in source and os.sep not in source and not found.exists():
        near = get_close_matches(source[:80], (*words, *PRESETS, DEFAULT), n=1)
        hint = f"did you mean {near[0]!r}? Allowed" if near else "allowed"
        others = "".join(f"{word}, " for word in words)
        raise CheckpointError(
            f"there is no such folder, encoder or preset; {hint}: a model folder or a run folder, "
            f"{DEFAULT}, {others}or a preset for new weights ({', '.join(_SHOWN)}, ...)",
            path=Path(source[:200]),
        ) from FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source[:200])
    return model_folder(found)
