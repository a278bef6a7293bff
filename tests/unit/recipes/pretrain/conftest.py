"""Tiny shards, and settings of a run over them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "data"))
from shard_fixture import make_shards

from litebert.data.shards import ShardSet
from litebert.recipes.pretrain.settings import PretrainSettings

MODEL = {
    "embedding_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 96,
}


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> ShardSet:
    return make_shards(tmp_path_factory.mktemp("text"))


@pytest.fixture
def wanted(shards: ShardSet) -> Any:
    """Make settings: sections of values over those of a run that takes a second."""

    def make(**sections: dict[str, Any]) -> PretrainSettings:
        values: dict[str, dict[str, Any]] = {
            "data": {"shards": str(shards.folder), "max_length": 96, "eval_fraction": 0.1},
            "model": {"config": MODEL},
            "objectives": {},
            "train": {
                "max_steps": 4,
                "batch_size": 4,
                "threads": 1,
                "precision": "fp32",
                "device": "cpu",
                "eval_steps": 2,
                "save_steps": 2,
            },
        }
        return PretrainSettings.model_validate(
            {name: table | sections.get(name, {}) for name, table in values.items()}
        )

    return make
