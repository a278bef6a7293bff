"""The plain graph for third-party runtimes: standard inputs, depths unrolled over shared weights."""

from __future__ import annotations

from typing import Final

import onnx
from onnx import TensorProto

from litebert.export.onnx.attention import AttentionWriter
from litebert.export.onnx.depths import DepthWriter
from litebert.export.onnx.embed import write_embeddings
from litebert.export.onnx.heads import HeadInputs, Output, in_rows, write_head
from litebert.export.onnx.packed import graph_metadata, write_relatives
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.sight import Layout, write_sight
from litebert.export.onnx.writer import GraphWriter

__all__ = ["plain_model"]

_LETTERS: Final = {"R": "batch", "S": "sequence", "N": "batch", "P": "batch"}
_WORDS: Final = ("mlm", "pretraining")
"""Heads with an output for each token's word, which here is asked for everywhere."""


def plain_model(model: ModelParts, precision: Precision) -> onnx.ModelProto:
    """Return the plain graph: `input_ids`, `attention_mask`, `token_type_ids`, [batch, sequence] each.

    Positions count columns, as transformers does. Hidden states of padding are leftovers.

    Raises:
        ExportError: a head or weights that cannot be exported.
    """
    graph = GraphWriter()
    config = model.config
    layout = _inputs(graph)
    hidden = write_embeddings(graph, model, precision, layout)
    sight = write_sight(graph, model, precision, layout)
    relative = write_relatives(graph, model, precision, sight)
    writer = DepthWriter(AttentionWriter(model, precision, layout, sight, relative))
    for depth in range(config.num_hidden_layers):
        hidden = writer.depth(graph, hidden, graph.int_scalar(depth), depth)
    if config.litebert.norm_position == "pre":
        hidden = model.norm(graph, hidden, "encoder.final_norm")
    inputs = HeadInputs(
        hidden, layout, lambda: _firsts(graph, layout), lambda: _slots(graph, layout)
    )
    outputs = write_head(graph, model, precision, inputs)
    if model.head in (None, "embedding"):
        shape: list[str | int] = ["R", "S", config.hidden_size]
        outputs.insert(0, ("last_hidden_state", in_rows(graph, hidden, layout), shape))
    for output in outputs:
        _declare(graph, model, layout, output)
    return graph.model("litebert", graph_metadata(model, precision))


def _inputs(graph: GraphWriter) -> Layout:
    names = ("input_ids", "attention_mask", "token_type_ids")
    shape = ["batch", "sequence"]
    ids, mask, types = (graph.add_input(name, TensorProto.INT64, shape) for name in names)
    size = graph.op("Shape", ids)
    rows, slots = graph.node("Split", size, outputs=2, axis=0, num_outputs=2)
    width = graph.op("Squeeze", slots, graph.ints(0))
    columns = graph.op("Range", graph.int_scalar(0), width, graph.int_scalar(1))
    places = graph.op("Expand", columns, size)
    return Layout(ids, types, places, mask, rows, slots, graph.op("Mul", rows, slots))


def _firsts(graph: GraphWriter, layout: Layout) -> str:
    """Flat index of the first real token of each row."""
    column = graph.op("ArgMax", layout.sequence_ids, axis=1, keepdims=0)
    count = graph.op("Squeeze", layout.rows, graph.ints(0))
    row = graph.op("Range", graph.int_scalar(0), count, graph.int_scalar(1))
    return graph.op("Add", graph.op("Mul", row, layout.slots), column)


def _slots(graph: GraphWriter, layout: Layout) -> str:
    total = graph.op("Squeeze", layout.tokens, graph.ints(0))
    return graph.op("Range", graph.int_scalar(0), total, graph.int_scalar(1))


def _declare(graph: GraphWriter, model: ModelParts, layout: Layout, output: Output) -> None:
    name, value, shape = output
    if model.head in _WORDS and shape[0] == "P":
        value, shape = in_rows(graph, value, layout), ["R", "S", *shape[1:]]
    graph.named_output(value, name, [_LETTERS.get(str(size), size) for size in shape])
