"""The vocabulary that a model from scratch gets, by language."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from litebert.recipes.finetune.own_vocabulary import train_own_vocabulary
from litebert.recipes.finetune.settings import ModelSettings

TEXTS = Path(__file__).resolve().parents[2] / "golden" / "texts"


def texts(language: str) -> list[str]:
    return (TEXTS / f"{language}.txt").read_text(encoding="utf-8").splitlines()


def marks(text: str) -> int:
    decomposed = unicodedata.normalize("NFKD", text)
    return sum(unicodedata.category(character)[0] == "M" for character in decomposed)


@pytest.mark.parametrize("language", ["fr", "de", "ja", "hi", "ar", "tr"])
def test_marks_that_belong_to_the_language_are_kept(language: str) -> None:
    tokenizer = train_own_vocabulary(ModelSettings(), texts(language))
    text = " ".join(texts(language))
    word = max(text.split(), key=marks)
    assert marks(word) > 0
    assert marks(tokenizer.decode(tokenizer.encode(word).ids)) > 0


def test_texts_without_accents_read_accented_words_as_plain_ones() -> None:
    plain = [f"the cafe number {n} opens" for n in range(40)]
    tokenizer = train_own_vocabulary(ModelSettings(), plain)
    assert tokenizer.encode("The CAFÉ opens").ids == tokenizer.encode("the cafe opens").ids


def test_what_is_told_is_done() -> None:
    settings = ModelSettings(lower_case=False, keep_accents=True)
    tokenizer = train_own_vocabulary(settings, texts("en"))
    assert tokenizer.encode("The").ids != tokenizer.encode("the").ids
