"""Whether the vocabulary beside the weights is the one they were trained with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from litebert.checkpoint.files import TOKENIZER_FILES
from litebert.errors import CheckpointError
from litebert.files import check_file, read_bytes
from litebert.text.tokenizer import Tokenizer, check_vocabulary_fits

__all__ = ["METADATA_KEY", "check_vocabulary", "vocabulary_stamp"]

METADATA_KEY: Final = "litebert.vocabulary"
"""Key in the weights' metadata; its value is "file name sha256"."""

_SOURCES: Final = ("spiece.model", "vocab.txt", "tokenizer.json")


def vocabulary_stamp(files: Mapping[str, bytes]) -> str | None:
    """Return "file name sha256" of the file that defines the vocabulary; None if there is none."""
    for name in _SOURCES:
        if name in files:
            return f"{name} {hashlib.sha256(files[name]).hexdigest()}"
    return None


def check_vocabulary(folder: Path, vocab_size: int, metadata: Mapping[str, str]) -> None:
    """Refuse a vocabulary that was exchanged since the weights were saved, or has too many entries.

    A folder without vocabulary passes: some models read symbols, not text.

    Raises:
        CheckpointError: it does not belong to the weights, or cannot be read.
    """
    name, _, digest = metadata.get(METADATA_KEY, "").partition(" ")
    if name in _SOURCES and check_file(folder / name) is not None:
        data = read_bytes(folder / name, max_bytes=TOKENIZER_FILES[name])
        if hashlib.sha256(data).hexdigest() != digest:
            raise CheckpointError(
                "is not the vocabulary that these weights were saved with; put the original back, "
                "or save the model again together with its tokenizer",
                path=folder / name,
            )
        return  # saving has checked its size
    if any(check_file(folder / source) is not None for source in _SOURCES):
        try:
            check_vocabulary_fits(Tokenizer.from_pretrained(folder), vocab_size)
        except CheckpointError as error:
            if error.path is not None:
                raise
            raise CheckpointError(str(error), path=folder) from error
