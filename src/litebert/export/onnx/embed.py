"""Factorised embeddings: token, segment and position, LayerNorm, projection to the hidden size."""

from __future__ import annotations

from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.sight import Layout
from litebert.export.onnx.writer import GraphWriter

__all__ = ["TOKEN_TABLE", "write_embeddings"]

TOKEN_TABLE = "embeddings.token"  # noqa: S105 - the table of pieces, no secret
"""Name of the table that masked-token prediction shares."""


def write_embeddings(
    graph: GraphWriter, model: ModelParts, precision: Precision, layout: Layout
) -> str:
    """Write the input of the first depth, [T, H], from ids [R, S]."""
    tables = [(TOKEN_TABLE, layout.input_ids), ("embeddings.token_type", layout.token_type_ids)]
    if model.config.litebert.has_position_table:
        tables.append(("embeddings.position", layout.position_ids))
    parts: list[str] = []
    for name, ids in tables:
        flat = graph.op("Reshape", ids, graph.ints(-1))
        parts.append(precision.look_up(graph, flat, name, model.weight(f"{name}.weight")))
    total = parts[0]
    for part in parts[1:]:
        total = graph.op("Add", total, part)
    hidden = model.norm(graph, total, "embeddings.norm")
    if not model.config.has_projection:
        return hidden
    return model.linear(graph, precision, hidden, "embeddings.project")
