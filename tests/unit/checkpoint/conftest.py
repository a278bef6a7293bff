"""Small models and hand-made weight files."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.checkpoint.saving import save_model
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig

Pack = Callable[..., bytes]


@pytest.fixture
def tiny_config() -> AlbertConfig:
    return AlbertConfig(
        vocab_size=19,
        embedding_size=4,
        hidden_size=8,
        num_hidden_layers=4,
        num_hidden_groups=2,
        inner_group_num=2,
        num_attention_heads=2,
        intermediate_size=6,
        max_position_embeddings=12,
    )


@pytest.fixture
def make_model(tiny_config: AlbertConfig) -> Callable[..., Any]:
    def make(head: str | None = "sequence", seed: int = 0, **changes: Any) -> Any:
        torch.manual_seed(seed)
        config = tiny_config.replace(**changes) if changes else tiny_config
        return AlbertModel(config) if head is None else AlbertWithHead(config, head)

    return make


@pytest.fixture
def saved(tmp_path: Path, make_model: Callable[..., Any]) -> Path:
    """A folder with a sequence-classification model."""
    folder = tmp_path / "saved"
    save_model(make_model("sequence"), folder)
    return folder


@pytest.fixture
def pack() -> Pack:
    """Return the bytes of a safetensors file from a header (object or raw bytes) and its data."""

    def make(header: dict[str, Any] | bytes, data: bytes = b"") -> bytes:
        raw = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(raw)) + raw + data

    return make
