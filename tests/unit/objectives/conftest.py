"""One small shard folder, cut into chunks, for the tests of objectives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "data"))
from shard_fixture import make_shards, sample_documents

from litebert.data.chunks import ChunkIndex
from litebert.objectives.base import SpecialIds
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.examples import ExampleMaker
from litebert.settings import build_settings
from litebert.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Corpus:
    """Chunks and what made them."""

    index: ChunkIndex
    tokenizer: Tokenizer
    tokens: SpecialIds

    def maker(self, seed: int = 5, **settings: object) -> ExampleMaker:
        """A maker with these objectives."""
        chosen = build_settings(ObjectiveSettings, settings)
        return ExampleMaker(self.index, chosen, self.tokens, seed)


@pytest.fixture(scope="session")
def make_corpus(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Corpus]:
    """Return a function (documents, vocabulary, tokens of a chunk) -> corpus."""

    def make(
        documents: list[list[str]] | None = None,
        vocab: int | Tokenizer = 120,
        max_tokens: int = 125,
        short_fraction: float = 0.1,
    ) -> Corpus:
        shards = make_shards(tmp_path_factory.mktemp("corpus"), documents, vocab)
        index = ChunkIndex.build(shards, max_tokens=max_tokens, short_fraction=short_fraction)
        tokenizer = Tokenizer.from_pretrained(shards.tokenizer_folder)
        return Corpus(index, tokenizer, SpecialIds.of(tokenizer))

    return make


@pytest.fixture(scope="session")
def corpus(make_corpus: Callable[..., Corpus]) -> Corpus:
    """Some hundred documents of one to twelve sentences."""
    return make_corpus(sample_documents(240, 12), vocab=150)


@pytest.fixture
def rng() -> np.random.Generator:
    """Seeded numbers."""
    return np.random.default_rng(0)
