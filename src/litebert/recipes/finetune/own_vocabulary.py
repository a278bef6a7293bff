"""A vocabulary trained on the texts at hand, for models that start from nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from litebert.text.vocabulary import train_vocabulary

if TYPE_CHECKING:
    from litebert.data.examples import Example
    from litebert.recipes.finetune.settings import ModelSettings
    from litebert.text.tokenizer import Tokenizer

__all__ = ["train_own_vocabulary"]


def train_own_vocabulary(model: ModelSettings, examples: Sequence[Example]) -> Tokenizer:
    """Return a SentencePiece tokenizer for the texts; the same texts give the same vocabulary.

    Raises:
        DataError: there is no text.
        SettingsError: the vocabulary size cannot hold the characters.
    """
    is_cased = _script_has_case(examples)
    with tempfile.TemporaryDirectory(prefix="litebert-vocabulary-") as folder:
        return train_vocabulary(
            _texts(examples),
            model.vocab_size,
            Path(folder),
            lower_case=is_cased if model.lower_case is None else model.lower_case,
            keep_accents=True if model.keep_accents is None else model.keep_accents,
        )


def _texts(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield example.text
        if example.pair is not None:
            yield example.pair


def _script_has_case(examples: Sequence[Example]) -> bool:
    """Whether most letters of a sample belong to a script with capital letters."""
    sample = "".join(example.text[:200] for example in examples[:500])
    letters = [character for character in sample if character.isalpha()]
    with_case = sum(character.upper() != character.lower() for character in letters)
    return with_case * 2 > len(letters)
