"""The files of a model folder: their names, their largest sizes, and what a name may be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from litebert.errors import CheckpointError

__all__ = [
    "CARD_FILE",
    "CONFIG_FILE",
    "INDEX_FILE",
    "TASK_FILE",
    "TOKENIZER_FILES",
    "WEIGHTS_FILE",
    "check_folder",
    "is_plain_name",
]

CONFIG_FILE: Final = "config.json"
WEIGHTS_FILE: Final = "model.safetensors"
INDEX_FILE: Final = "model.safetensors.index.json"
TASK_FILE: Final = "task.json"
CARD_FILE: Final = "README.md"

TOKENIZER_FILES: Final[dict[str, int]] = {
    "spiece.model": 50 << 20,
    "vocab.txt": 50 << 20,
    "tokenizer.json": 50 << 20,
    "tokenizer_config.json": 4 << 20,
    "special_tokens_map.json": 4 << 20,
    "added_tokens.json": 4 << 20,
}
"""Name -> largest size in bytes. A vocabulary of 30,000 pieces has 0.8 MB, its JSON 2 MB."""


def check_folder(folder: Path) -> None:
    """Refuse what is not a folder that can be listed.

    Raises:
        CheckpointError: missing, a file, or not readable.
    """
    try:
        if not folder.is_dir():
            found = "a file" if folder.exists() else "nothing"
            raise CheckpointError(f"found {found}, expected a model folder", path=folder)
        os.scandir(folder).close()
    except (OSError, ValueError) as error:
        raise CheckpointError(f"cannot read the folder: {error}", path=folder) from error


def is_plain_name(name: str) -> bool:
    """Return whether `name` is a file name and nothing more: no separator, no `..`, no drive."""
    return (
        0 < len(name) <= 255
        and name not in (".", "..")
        and name.isprintable()
        and not any(letter in name for letter in '/\\:*?"<>|')
    )
