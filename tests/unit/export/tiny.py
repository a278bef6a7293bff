"""Tiny random models, and running graphs of them."""

from __future__ import annotations

from typing import Any

import torch

from litebert.export.onnx.exporter import graph_runner
from litebert.export.onnx.packed import packed_model
from litebert.export.onnx.source import Source, make_precision
from litebert.export.verify import Difference, Referee, Runner
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig

SIZES: dict[str, Any] = {
    "vocab_size": 60,
    "embedding_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
}


def tiny(head: str | None = None, *, seed: int = 0, **changes: Any) -> AlbertModel | AlbertWithHead:
    """A model whose every weight matters: none is zero, gains are near 1."""
    config = AlbertConfig.from_dict(SIZES | changes)
    model = AlbertModel(config) if head is None else AlbertWithHead(config, head)
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(torch.randn_like(value) * (0.3 if value.ndim > 1 else 0.2))
            if name.endswith("norm.weight") and "adapters" not in name:
                value.add_(1.0)
    return model.eval()


def packed_runner(model: AlbertModel | AlbertWithHead, precision: str = "fp32") -> Runner:
    source = Source.of(model)
    proto = packed_model(source.parts, make_precision(precision, source))
    return graph_runner(proto.SerializeToString())


def packed_difference(model: AlbertModel | AlbertWithHead, precision: str = "fp32") -> Difference:
    return Referee(model).packed(packed_runner(model, precision))
