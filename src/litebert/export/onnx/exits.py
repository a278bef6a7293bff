"""Passes in stages and exits: a graph that starts at any depth, and stops when the answer is sure.

Stages: the runtime runs some depths, drops the sequences that have their answer, and hands the hidden
states of the rest back in. In the loop: with `exit_threshold` all sequences of the batch go on until
each of them is that sure, for batches of one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.writer import GraphWriter

__all__ = ["Stage", "exit_logits", "exit_state", "start_state", "write_certainty"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Names of what says where a pass starts and ends.

    Attributes:
        start: depths that were run before, int64 scalar.
        count: depths to run now, int64 scalar, >= 0.
    """

    start: str
    count: str


def start_state(graph: GraphWriter, depths: int) -> Stage:
    """Declare `depth` and `start_depth`, and return them within 0 and the depths of the model."""

    def bounded(name: str, default: int) -> str:
        graph.add_input(name, TensorProto.INT64, [])
        graph.store(name, np.array(default, np.int64))
        most = graph.op("Min", name, graph.int_scalar(depths))
        return graph.op("Max", most, graph.int_scalar(0))

    end, start = bounded("depth", depths), bounded("start_depth", 0)
    count = graph.op("Max", graph.op("Sub", end, start), graph.int_scalar(0))
    return Stage(start, count)


def exit_state(
    graph: GraphWriter, width: int, stage: Stage, embed: Callable[[GraphWriter], str]
) -> str:
    """Write the state that the pass starts with, [T, H]: `hidden_in`, or embeddings at depth 0."""
    graph.add_input("hidden_in", TensorProto.FLOAT, ["hidden_rows", "hidden_slots", width])
    graph.store("hidden_in", np.zeros((1, 1, width), np.float32))
    is_later = graph.op("Greater", stage.start, graph.int_scalar(0))
    given, fresh = graph.inner(), graph.inner()
    flat = given.op("Reshape", "hidden_in", given.ints(-1, width))
    given.add_output(flat, TensorProto.FLOAT, ["T", width])
    fresh.add_output(embed(fresh), TensorProto.FLOAT, ["T", width])
    return graph.op(
        "If", is_later, then_branch=given.graph("given"), else_branch=fresh.graph("embedded")
    )


def exit_logits(
    graph: GraphWriter,
    model: ModelParts,
    precision: Precision,
    features: str,
    depth: str,
    name: str,
) -> str:
    """Write the logits after `depth` depths (1..L): each depth has its row of one stored array."""
    own = f"heads.{name}.classifier"
    weight = np.concatenate([model.weight("exits.weight"), model.weight(f"{own}.weight")[None]])
    bias = np.concatenate([model.weight("exits.bias"), model.weight(f"{own}.bias")[None]])
    place = graph.op("Max", graph.op("Sub", depth, graph.int_scalar(1)), graph.int_scalar(0))
    chosen = precision.step_matrix(graph, place, "exits.weight", weight)
    added = graph.op("Gather", graph.store("exits.bias", bias), place, axis=0)
    return graph.op("Gemm", features, chosen, added, transB=1)


def write_certainty(graph: GraphWriter, logits: str, kind: str | None, temperature: str) -> str:
    """Write how sure the least sure sequence is, a scalar from 0 to 1.

    Of classes the probability of the likeliest; of sets of labels every yes and no counts.
    """
    scaled = graph.op("Div", logits, temperature)
    if kind == "multi_label_classification":
        yes = graph.op("Sigmoid", scaled)
        sure = graph.op("Max", yes, graph.op("Sub", graph.float_scalar(1.0), yes))
        return graph.op("ReduceMin", sure, keepdims=0)
    sure = graph.op("ReduceMax", graph.op("Softmax", scaled, axis=1), graph.ints(1), keepdims=0)
    return graph.op("ReduceMin", sure, keepdims=0)
