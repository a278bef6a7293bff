"""The joint span head in a packed graph: the columns that `litebert.model.span_layout` names.

Each sequence has its own softmax, over the slots that are its own: [N, T] with the rest masked.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import TensorProto

from litebert.export.onnx.members import Members
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.sight import Layout
from litebert.export.onnx.writer import GraphWriter
from litebert.model.span_layout import START_BEAM

__all__ = ["write_span_joint"]

MASKED: Final = -1e30
"""Logit of a token where no answer can start or end; as `model/span_head.py`."""


def write_span_joint(
    graph: GraphWriter,
    model: ModelParts,
    precision: Precision,
    hidden: str,
    layout: Layout,
    first_positions: str,
    members: Members,
) -> tuple[str, int]:
    """Write one row for each slot, [T, 2 + beam + C], and return it with its width."""
    classes = model.config.num_labels
    allowed = _allowed(graph, layout, first_positions, members)  # [N, T]
    starts = _starts(graph, model, precision, hidden, allowed)  # [N, T]
    best, rank = _best(graph, starts, members)
    own_start = graph.op("Transpose", _own(graph, starts, members), perm=[1, 0])  # [T, 1]
    ends = _ends(graph, model, precision, hidden, best, allowed, members)
    logits = _classes(graph, model, precision, hidden, starts, first_positions)
    spread = graph.op("Gather", logits, members.owner, axis=0)
    return graph.op("Concat", own_start, rank, ends, spread, axis=1), 2 + START_BEAM + classes


def _allowed(graph: GraphWriter, layout: Layout, first_positions: str, members: Members) -> str:
    """Where an answer of each sequence can start or end: its passage but the last, and its first."""
    types = graph.op("Reshape", layout.token_type_ids, graph.ints(-1))
    is_passage = graph.op("Equal", types, graph.int_scalar(1))
    none = graph.int_scalar(-1)
    last = graph.op(
        "ReduceMax",
        graph.op("Where", members.is_member, members.slots, none),
        graph.ints(1),
        keepdims=1,
    )  # [N, 1]
    is_not_last = graph.op("Less", members.slots, last)
    first = graph.op("Unsqueeze", first_positions, graph.ints(1))
    is_first = graph.op("Equal", members.slots, first)
    inside = graph.op("Or", graph.op("And", is_passage, is_not_last), is_first)
    return graph.op("And", inside, members.is_member)


def _starts(
    graph: GraphWriter, model: ModelParts, precision: Precision, hidden: str, allowed: str
) -> str:
    logits = model.linear(graph, precision, hidden, "heads.span_joint.start")  # [T, 1]
    flat = graph.op("Transpose", logits, perm=[1, 0])
    masked = graph.op("Where", allowed, flat, graph.float_scalar(MASKED))
    return graph.op("LogSoftmax", masked, axis=1)


def _best(graph: GraphWriter, starts: str, members: Members) -> tuple[str, str]:
    """Slots of the best starts [N, beam], and the place of each slot among them, [T, 1]."""
    # As many more columns, so that there are enough in any batch; they are never chosen.
    pad = graph.constant(np.array([0, 0, 0, START_BEAM], np.int64))
    wide = graph.op("Pad", starts, pad, graph.float_scalar(2 * MASKED))
    values, slots = graph.node("TopK", wide, graph.ints(START_BEAM), outputs=2, axis=1)
    is_real = graph.op("Greater", values, graph.float_scalar(MASKED / 2))  # [N, beam]
    chosen = graph.op("Where", is_real, slots, graph.int_scalar(-1))
    each = graph.op("Unsqueeze", members.slots, graph.ints(1, 2))  # [T, 1, 1]
    is_here = graph.op("Equal", each, graph.op("Unsqueeze", chosen, graph.ints(0)))  # [T, N, beam]
    places = graph.constant(np.arange(1, START_BEAM + 1, dtype=np.float32))
    hits = graph.op("Mul", graph.op("Cast", is_here, to=TensorProto.FLOAT), places)
    rank = graph.op("ReduceMax", hits, graph.ints(1, 2), keepdims=0)
    rank = graph.op("Sub", graph.op("Unsqueeze", rank, graph.ints(1)), graph.float_scalar(1.0))
    return graph.op("Max", chosen, graph.int_scalar(0)), rank


def _ends(
    graph: GraphWriter,
    model: ModelParts,
    precision: Precision,
    hidden: str,
    best: str,
    allowed: str,
    members: Members,
) -> str:
    """Log-probability of each slot as the end, given each of the best starts, [T, beam]."""
    name, width = "heads.span_joint", model.config.hidden_size
    weight = model.weight(f"{name}.end_dense.weight")
    bias = model.weight(f"{name}.end_dense.bias")
    around = precision.linear(graph, hidden, f"{name}.end_token", weight[:, :width], bias)
    flat = graph.op("Reshape", best, graph.ints(-1))
    states = graph.op("Gather", hidden, flat, axis=0)  # [N * beam, H]
    given = precision.linear(graph, states, f"{name}.end_start", weight[:, width:], None)
    given = graph.op("Reshape", given, graph.ints(-1, START_BEAM, width))
    own = graph.op("Gather", given, members.owner, axis=0)  # [T, beam, H]
    both = graph.op("Add", graph.op("Unsqueeze", around, graph.ints(1)), own)
    features = model.norm(graph, graph.op("Tanh", both), f"{name}.end_norm")
    features = graph.op("Reshape", features, graph.ints(-1, width))
    logits = model.linear(graph, precision, features, f"{name}.end")
    logits = graph.op("Reshape", logits, graph.ints(1, -1, START_BEAM))  # [1, T, beam]
    mask = graph.op("Unsqueeze", allowed, graph.ints(2))  # [N, T, 1]
    masked = graph.op("Where", mask, logits, graph.float_scalar(MASKED))
    scores = graph.op("LogSoftmax", masked, axis=1)  # [N, T, beam]
    kept = graph.op("Where", mask, scores, graph.float_scalar(MASKED))
    return graph.op("ReduceMax", kept, graph.ints(0), keepdims=0)  # a slot is of one sequence


def _classes(
    graph: GraphWriter,
    model: ModelParts,
    precision: Precision,
    hidden: str,
    starts: str,
    first_positions: str,
) -> str:
    """Logits of the answer's classes from the expected start and the first token, [N, C]."""
    expected = graph.op("MatMul", graph.op("Exp", starts), hidden)
    first = graph.op("Gather", hidden, first_positions, axis=0)
    both = graph.op("Concat", expected, first, axis=1)
    features = graph.op(
        "Tanh", model.linear(graph, precision, both, "heads.span_joint.answer_dense")
    )
    return model.linear(graph, precision, features, "heads.span_joint.answer", bias=False)


def _own(graph: GraphWriter, scores: str, members: Members) -> str:
    """[N, T] -> [1, T]: what each slot has in its own sequence; padding has the masked value."""
    kept = graph.op("Where", members.is_member, scores, graph.float_scalar(MASKED))
    return graph.op("ReduceMax", kept, graph.ints(0), keepdims=1)
