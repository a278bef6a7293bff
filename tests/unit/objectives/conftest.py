"""One small shard folder, cut into chunks, for the tests of objectives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "data"))
from shard_fixture import make_shards, sample_documents

from litebert.data.chunks import ChunkIndex
from litebert.model.config import AlbertConfig
from litebert.model.packing import Packing
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


def as_tensors(batch: Any) -> Any:
    """A batch as tensors on the CPU."""
    order = batch.order_labels
    return SimpleNamespace(
        input_ids=torch.from_numpy(batch.input_ids).long(),
        packing=Packing.from_lengths(batch.lengths.tolist()),
        token_type_ids=torch.from_numpy(batch.token_type_ids).long(),
        position_ids=torch.from_numpy(batch.position_ids).long(),
        labels=None if batch.labels is None else torch.from_numpy(batch.labels),
        order_labels=None if order is None else torch.from_numpy(order),
        example_index=batch.example_index,
    )


@pytest.fixture(scope="session")
def tensors() -> Callable[[Any], Any]:
    """Return a function numpy batch -> tensors."""
    return as_tensors


@pytest.fixture(scope="session")
def small_config(corpus: Corpus) -> AlbertConfig:
    """Three depths over the vocabulary of `corpus`."""
    return AlbertConfig.from_dict(
        {
            "vocab_size": corpus.tokenizer.vocab_size,
            "embedding_size": 12,
            "hidden_size": 16,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "intermediate_size": 24,
            "max_position_embeddings": 160,
            "initializer_range": 0.2,
        }
    )
