"""The packed graph: rows that hold several sequences, one loop over the depths.

Interface: docs/reference/exported-folder.md.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto

from litebert.export.onnx.attention import AttentionWriter, RelativeNames, write_relative
from litebert.export.onnx.depths import DepthWriter
from litebert.export.onnx.embed import write_embeddings
from litebert.export.onnx.exits import Stage, exit_state, start_state, write_certainty
from litebert.export.onnx.heads import HeadInputs, classify, in_rows, write_head
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.sight import Layout, Sight, write_sight
from litebert.export.onnx.writer import GraphWriter
from litebert.model.sharing import num_attentions

__all__ = ["GRAPH_FORMAT_VERSION", "can_exit", "graph_metadata", "packed_model", "write_relatives"]

GRAPH_FORMAT_VERSION: Final = 1
"""Version of the interface of the packed graph."""
NEVER: Final = 2.0
"""Default of `exit_threshold`: a probability that nothing reaches."""


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

    stage = start_state(graph, config.num_hidden_layers)
    hidden = exit_state(
        graph,
        config.hidden_size,
        stage,
        lambda inside: write_embeddings(inside, model, precision, layout),
    )
    inputs = HeadInputs(
        hidden,
        layout,
        lambda: once("first_positions", "N"),
        lambda: once("masked_positions", "P"),
    )
    hidden, ran = _depths(graph, model, precision, stage, inputs)
    shape = ["R", "S", config.hidden_size]
    if config.litebert.norm_position == "pre":
        graph.named_output(in_rows(graph, hidden, layout), "hidden_out", shape)
        hidden = model.norm(graph, hidden, "encoder.final_norm")
    graph.named_output(in_rows(graph, hidden, layout), "last_hidden_state", shape)
    if can_exit(model):
        graph.named_output(ran, "exit_depth", [], TensorProto.INT64)
    inputs = replace(inputs, hidden=hidden, depth=ran)
    for name, value, output_shape in write_head(graph, model, precision, inputs):
        graph.named_output(value, name, output_shape)
    return graph.model("litebert", graph_metadata(model, precision))


def _inputs(graph: GraphWriter) -> Layout:
    names = ("input_ids", "token_type_ids", "position_ids", "sequence_ids")
    ids = [graph.add_input(name, TensorProto.INT64, ["R", "S"]) for name in names]
    shape = graph.op("Shape", ids[0])
    rows, slots = graph.node("Split", shape, outputs=2, axis=0, num_outputs=2)
    return Layout(*ids, rows=rows, slots=slots, tokens=graph.op("Mul", rows, slots))


def can_exit(model: ModelParts) -> bool:
    """Return whether a graph stops by itself: a class or labels of whole texts, at every depth."""
    return (
        model.has_exits and model.head == "sequence" and model.config.problem_type != "regression"
    )


def _depths(
    graph: GraphWriter, model: ModelParts, precision: Precision, stage: Stage, inputs: HeadInputs
) -> tuple[str, str]:
    layout = inputs.layout
    sight = write_sight(graph, model, precision, layout)
    relative = write_relatives(graph, model, precision, sight)
    writer = DepthWriter(AttentionWriter(model, precision, layout, sight, relative))
    if not can_exit(model):
        return writer.loop(graph, inputs.hidden, stage)
    threshold, temperature = "exit_threshold", "exit_temperature"
    for name, default in ((threshold, NEVER), (temperature, 1.0)):
        graph.add_input(name, TensorProto.FLOAT, [])
        graph.store(name, np.array(default, np.float32))
    is_asked = graph.op("LessOrEqual", threshold, graph.float_scalar(1.0))
    inputs.first_positions()  # declared out here, used inside

    def is_sure(body: GraphWriter, hidden: str, ran: str) -> str:
        yes, no = body.inner(), body.inner()
        if model.config.litebert.norm_position == "pre":
            hidden = model.norm(yes, hidden, "encoder.final_norm")
        logits = classify(
            yes, model, precision, replace(inputs, hidden=hidden, depth=ran), "sequence"
        )
        sure = write_certainty(yes, logits, model.config.problem_type, temperature)
        yes.add_output(yes.op("GreaterOrEqual", sure, threshold), TensorProto.BOOL, [])
        no.add_output(no.op("Identity", is_asked), TensorProto.BOOL, [])  # it is false here
        return body.op(
            "If",
            is_asked,
            then_branch=yes.graph("asks"),
            else_branch=no.graph("goes_on"),
        )

    return writer.loop(graph, inputs.hidden, stage, is_sure)


def write_relatives(
    graph: GraphWriter, model: ModelParts, precision: Precision, sight: Sight
) -> list[RelativeNames]:
    """Write the relative positions of each stored attention; none without them."""
    rows = sight.relative_rows
    if rows is None:
        return []
    numbers = range(num_attentions(model.config.plan))
    return [write_relative(graph, model, precision, rows, number) for number in numbers]


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
        "features": ["stages", *(["exit_heads"] if model.has_exits else [])]
        + (["exit"] if can_exit(model) else []),
    }
    return {f"litebert.{name}": json.dumps(value) for name, value in values.items()}
