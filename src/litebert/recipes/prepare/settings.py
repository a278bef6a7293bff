"""What decides the content of prepared shards; nothing else does."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from litebert.data.corpus import CorpusOptions
from litebert.settings import Settings

__all__ = ["Dedup", "PrepareSettings"]

Dedup = Literal["none", "exact", "near"]


class PrepareSettings(Settings):
    """How a corpus becomes shards."""

    corpus: CorpusOptions = CorpusOptions(on_bad="skip")
    """How files become documents; what cannot be read is left out, counted and listed."""
    sentences: str = "sentencex"
    """Name of a sentence splitter: sentencex, lines, paragraphs, or a dotted path."""
    language: str = "en"
    """ISO code, for the sentence splitter."""
    min_characters: int = Field(default=1, ge=1, le=1_000_000)
    """A document with fewer characters other than blanks is dropped."""
    dedup: Dedup = "none"
    """Drop documents that say exactly (letter case and blanks aside), or nearly, what an earlier
    one says."""
    near_threshold: float = Field(default=0.8, gt=0.0, le=1.0)
    """Least estimated similarity of near-duplicates: shared stretches of 5 characters."""
    shard_tokens: int = Field(default=1 << 24, ge=1 << 10, le=1 << 31)
    """A shard ends with the document that reaches so many tokens. An interrupted run loses at
    most one unfinished shard."""
    eval_fraction: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of documents that go to OUT/eval, chosen by a hash of their text and the seed: equal
    documents stay together."""
    seed: int = Field(default=0, ge=0, lt=1 << 63)
    """Of the choice of held-out documents."""
