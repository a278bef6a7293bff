"""A vocabulary trained on the texts at hand, for models that start from nothing."""

from __future__ import annotations

import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litebert.text.vocabulary import train_vocabulary

if TYPE_CHECKING:
    from litebert.recipes.finetune.settings import ModelSettings
    from litebert.text.tokenizer import Tokenizer

__all__ = ["train_own_vocabulary"]

SAMPLE_TEXTS: Final = 2_000
MIN_ACCENTED_FRACTION: Final = 0.005
"""Measured share of letters with a mark (XQuAD, JNLI): English 0.04 %, Russian 1.3 %, German 1.4 %,
Spanish 2.3 %, Arabic 4.4 %, Japanese 11 %, Hindi 39 %."""


def train_own_vocabulary(model: ModelSettings, texts: Sequence[str]) -> Tokenizer:
    """Return a SentencePiece tokenizer for the texts; the same texts give the same vocabulary.

    Raises:
        DataError: there is no text.
        SettingsError: the vocabulary size cannot hold the characters.
    """
    letters = _sample_letters(texts)
    with tempfile.TemporaryDirectory(prefix="litebert-vocabulary-") as folder:
        return train_vocabulary(
            iter(texts),
            model.vocab_size,
            Path(folder),
            lower_case=_have_case(letters) if model.lower_case is None else model.lower_case,
            keep_accents=_have_accents(letters)
            if model.keep_accents is None
            else model.keep_accents,
        )


def _sample_letters(texts: Sequence[str]) -> list[str]:
    """Return the letters and combining marks of a sample, composed where Unicode has a composed form."""
    sample = "".join(text[:200] for text in texts[:SAMPLE_TEXTS])
    composed = unicodedata.normalize("NFC", sample)
    return [character for character in composed if unicodedata.category(character)[0] in "LM"]


def _have_case(letters: Sequence[str]) -> bool:
    """Whether most letters belong to a script with capital letters."""
    return 2 * sum(letter.upper() != letter.lower() for letter in letters) > len(letters)


def _have_accents(letters: Sequence[str]) -> bool:
    """Whether accents and vowel signs belong to the language, and not to a few foreign words.

    Where they do not, dropping them keeps a later accented word from becoming unknown.
    """
    marked = sum(
        any(
            unicodedata.combining(part) or unicodedata.category(part)[0] == "M"
            for part in unicodedata.normalize("NFKD", letter)
        )
        for letter in letters
    )
    return marked > MIN_ACCENTED_FRACTION * len(letters)
