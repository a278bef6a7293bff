"""Small models for every test of this folder."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from litebert.model.config import AlbertConfig


def _make_config(**changes: Any) -> AlbertConfig:
    return AlbertConfig.from_dict(
        {
            "vocab_size": 50,
            "embedding_size": 8,
            "hidden_size": 16,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 24,
            "max_position_embeddings": 128,
            "initializer_range": 0.3,  # far from zero, so that every part matters
            **changes,
        }
    )


@pytest.fixture(scope="session")
def make_config():
    """Maker of small configurations."""
    return _make_config


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
