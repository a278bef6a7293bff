"""What a setting `source` means that is neither a preset nor a word: a folder, or a named encoder."""

from __future__ import annotations

from pathlib import Path

from litebert.model.presets import preset
from litebert.models import locate
from litebert.recipes.run_folder import model_folder

__all__ = ["source_folder"]


def source_folder(source: str) -> Path:
    """Return the model folder that a `source` means.

    Args:
        source: path of a model or run folder, or the name of an encoder that comes with litebert.

    Raises:
        SettingsError: no path, and like the name of a preset rather than of an encoder.
        CheckpointError: no usable folder.
    """
    found = locate(source)
    if "/" not in source and not found.exists():
        preset(source)  # refuses it, and names the nearest preset
    return model_folder(found)
