"""One digest for all that decides what a model folder computes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from litebert.checkpoint.files import CONFIG_FILE, TOKENIZER_FILES
from litebert.errors import CheckpointError

__all__ = ["folder_digest"]

_WEIGHTS: Final = (".safetensors", ".bin")


def folder_digest(folder: Path, *names: str) -> str:
    """Return sha256 (hex) over configuration, tokenizer and weights of a model folder.

    Args:
        folder: of this project or of another library.
        names: further files that count.

    Raises:
        CheckpointError: a file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        weights = [path.name for path in folder.iterdir() if path.suffix in _WEIGHTS]
        for name in sorted({CONFIG_FILE, *TOKENIZER_FILES, *weights, *names}):
            path = folder / name
            if path.is_file():
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                digest.update(f"{name}:{found}\n".encode())
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error.strerror}", path=folder) from error
    return digest.hexdigest()
