"""How well a vocabulary fits its corpus, file by file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from litebert.text.tokenizer import Tokenizer
from litebert.text.words import word_boundaries

__all__ = ["Fit", "VocabularyReport", "lost_marks", "measure_fit"]

MIN_LOST_FRACTION: Final = 0.005
"""Letters that lose a mark before it is worth a warning; English has 0.04 %, German 1.4 %."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Counts over a sample of one part of the corpus.

    Attributes:
        name: file or folder.
        documents: documents read from it.
        characters: characters read from it.
        sample_characters: characters looked at here, without white space.
        words: words among them by Unicode word boundaries; punctuation marks count, and each
            Chinese character.
        pieces: tokens of the sample.
        unknown_pieces: tokens that are the unknown one.
        unknown_characters: characters that stand behind them.
    """

    name: str
    documents: int
    characters: int
    sample_characters: int
    words: int
    pieces: int
    unknown_pieces: int
    unknown_characters: int

    @property
    def coverage(self) -> float:
        """Fraction of characters that the vocabulary knows."""
        return 1.0 - self.unknown_characters / max(self.sample_characters, 1)

    @property
    def fertility(self) -> float:
        """Pieces per word."""
        return self.pieces / max(self.words, 1)

    @property
    def unknown_rate(self) -> float:
        """Fraction of pieces that are the unknown one."""
        return self.unknown_pieces / max(self.pieces, 1)

    def to_json(self) -> dict[str, Any]:
        """Return counts and rates."""
        return {
            "name": self.name,
            "documents": self.documents,
            "characters": self.characters,
            "sample_characters": self.sample_characters,
            "coverage": round(self.coverage, 6),
            "fertility": round(self.fertility, 4),
            "unknown_rate": round(self.unknown_rate, 6),
        }


@dataclass(frozen=True, slots=True)
class VocabularyReport:
    """What `make_vocabulary` made. `to_json` is the same for the same corpus and settings.

    Attributes:
        settings: the settings, as JSON.
        size: pieces reached.
        fingerprint: sha256 of what decides the ids of a text.
        documents: documents read.
        characters: characters read.
        sample_bytes: bytes that the vocabulary was learned from.
        sample_sentences: sentences among them.
        is_sampled: whether that is less than everything.
        total: fit over all parts.
        parts: fit of each file, or of each path given when there are many files.
        faults: how often something was left out or cut, by kind.
        examples: the first faults, in words.
        warnings: what the user should know.
        seconds: time it took; not in `to_json`.
    """

    settings: Mapping[str, Any]
    size: int
    fingerprint: str
    documents: int
    characters: int
    sample_bytes: int
    sample_sentences: int
    is_sampled: bool
    total: Fit
    parts: tuple[Fit, ...]
    faults: Mapping[str, int]
    examples: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the content of `vocabulary.json`."""
        return {
            "format": 1,
            "size": self.size,
            "fingerprint": self.fingerprint,
            "settings": dict(self.settings),
            "corpus": {
                "documents": self.documents,
                "characters": self.characters,
                "sample_bytes": self.sample_bytes,
                "sample_sentences": self.sample_sentences,
                "is_sampled": self.is_sampled,
            },
            "total": self.total.to_json(),
            "parts": [part.to_json() for part in self.parts],
            "faults": dict(self.faults),
            "fault_examples": list(self.examples),
            "warnings": list(self.warnings),
        }


def measure_fit(
    tokenizer: Tokenizer, texts: Iterable[str], *, name: str, documents: int, characters: int
) -> Fit:
    """Encode texts and count.

    Args:
        tokenizer: vocabulary to measure.
        texts: a sample of the part.
        name: what the part is called.
        documents: documents the whole part has.
        characters: characters the whole part has.
    """
    seen = words = pieces = unknown = lost = 0
    for text in texts:
        encoded = tokenizer.pieces(text)
        seen += len("".join(text.split()))
        words += sum(word_boundaries(text))
        pieces += len(encoded.ids)
        if tokenizer.unk_id in encoded.ids:
            for token_id, (first, last) in zip(encoded.ids, encoded.spans, strict=True):
                if token_id == tokenizer.unk_id:
                    unknown += 1
                    lost += len("".join(text[first:last].split()))
    return Fit(name, documents, characters, seen, words, pieces, unknown, lost)


def lost_marks(texts: Iterable[str]) -> tuple[float, str]:
    """Return the fraction of letters that lose an accent or sign, and the commonest of them."""
    letters = 0
    lost: dict[str, int] = {}
    for text in texts:
        for character in unicodedata.normalize("NFC", text):
            kind = _kind(character)
            letters += kind > 0
            if kind > 1:
                lost[character] = lost.get(character, 0) + 1
    common = sorted(lost, key=lambda character: (-lost[character], character))[:6]
    return sum(lost.values()) / max(letters, 1), " ".join(common)


@lru_cache(maxsize=1 << 14)
def _kind(character: str) -> int:
    """0 no letter, 1 a letter, 2 a letter or sign that is changed by dropping marks."""
    if unicodedata.category(character)[0] not in "LM":
        return 0
    parts = unicodedata.normalize("NFKD", character)
    return 2 if any(unicodedata.combining(part) for part in parts) else 1
