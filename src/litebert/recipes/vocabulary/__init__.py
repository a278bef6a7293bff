"""A vocabulary from a corpus: sample, learn, measure, and a folder of tokenizer files."""

from __future__ import annotations

from litebert.recipes.vocabulary.presets import PRESETS, Preset
from litebert.recipes.vocabulary.report import VocabularyReport
from litebert.recipes.vocabulary.run import (
    VocabularyProgress,
    VocabularySettings,
    make_vocabulary,
)

__all__ = [
    "PRESETS",
    "Preset",
    "VocabularyProgress",
    "VocabularyReport",
    "VocabularySettings",
    "make_vocabulary",
]
