"""The packed graph: rows that hold several sequences, one loop over the depths.

Interface: docs/explanation/exported-graph.md.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto

from litebert.export.onnx.attention import AttentionWriter, RelativeNames, write_relative
from litebert.export.onnx.depths import DepthWriter
from litebert.export.onnx.embed import write_embeddings
from litebert.export.onnx.heads import HeadInputs, in_rows, write_head
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.sight import Layout, Sight, write_sight
from litebert.export.onnx.writer import GraphWriter
from litebert.model.sharing import num_attentions

__all__ = ["GRAPH_FORMAT_VERSION", "graph_metadata", "packed_model", "write_relatives"]

GRAPH_FORMAT_VERSION: Final = 1
"""Version of the interface of the packed graph."""


def packed_model(model: ModelParts, precision: Precision) -> onnx.ModelProto:
    """Return the packed graph of a model.

    Raises:
        ExportError: a head or weights that cannot be exported.
    """
    graph = GraphWriter()
    config = model.config
    layout = _inputs(graph)
    declared: dict[str, str] = {}

    def once(name: str, letter: str) -> str:
        if name not in declared:
            declared[name] = graph.add_input(name, TensorProto.INT64, [letter])
        return declared[name]

    count = _depth_input(graph, config.num_hidden_layers)
    hidden = write_embeddings(graph, model, precision, layout)
    hidden = _depths(graph, model, precision, layout, hidden, count)
    shape = ["R", "S", config.hidden_size]
    graph.named_output(in_rows(graph, hidden, layout), "last_hidden_state", shape)
    inputs = HeadInputs(
        hidden,
        layout,
        lambda: once("first_positions", "N"),
        lambda: once("masked_positions", "P"),
    )
    for name, value, output_shape in write_head(graph, model, precision, inputs):
        graph.named_output(value, name, output_shape)
    return graph.model("litebert", graph_metadata(model, precision))


def _inputs(graph: GraphWriter) -> Layout:
    names = ("input_ids", "token_type_ids", "position_ids", "sequence_ids")
    ids = [graph.add_input(name, TensorProto.INT64, ["R", "S"]) for name in names]
    shape = graph.op("Shape", ids[0])
    rows, slots = graph.node("Split", shape, outputs=2, axis=0, num_outputs=2)
    return Layout(*ids, rows=rows, slots=slots, tokens=graph.op("Mul", rows, slots))


def _depth_input(graph: GraphWriter, depths: int) -> str:
    """Depths to run: an input with a default, kept between 0 and what the model has."""
    graph.add_input("depth", TensorProto.INT64, [])
    graph.store("depth", np.array(depths, np.int64))
    most = graph.op("Min", "depth", graph.int_scalar(depths))
    return graph.op("Max", most, graph.int_scalar(0))


def _depths(
    graph: GraphWriter,
    model: ModelParts,
    precision: Precision,
    layout: Layout,
    hidden: str,
    count: str,
) -> str:
    sight = write_sight(graph, model, precision, layout)
    relative = write_relatives(graph, model, precision, sight)
    attention = AttentionWriter(model, precision, layout, sight, relative)
    hidden = DepthWriter(attention).loop(graph, hidden, count)
    if model.config.litebert.norm_position == "pre":
        hidden = model.norm(graph, hidden, "encoder.final_norm")
    return hidden


def write_relatives(
    graph: GraphWriter, model: ModelParts, precision: Precision, sight: Sight
) -> list[RelativeNames]:
    """Write the relative positions of each stored attention; none without them."""
    if sight.relative_index is None:
        return []
    numbers = range(num_attentions(model.config.plan))
    return [write_relative(graph, model, precision, sight, number) for number in numbers]


def graph_metadata(model: ModelParts, precision: Precision) -> dict[str, str]:
    """Return the notes that stand beside a graph."""
    config = model.config
    values = {
        "format_version": GRAPH_FORMAT_VERSION,
        "head": model.head,
        "depth": config.num_hidden_layers,
        "precision": precision.name,
        "max_positions": config.max_position_embeddings
        if config.litebert.has_position_table
        else None,
    }
    return {f"litebert.{name}": json.dumps(value) for name, value in values.items()}
