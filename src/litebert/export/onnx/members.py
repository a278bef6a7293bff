"""Which slot of a packed batch belongs to which sequence, for heads that look at whole sequences."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorProto

from litebert.export.onnx.sight import Layout
from litebert.export.onnx.writer import GraphWriter

__all__ = ["Members", "write_members"]


@dataclass(frozen=True, slots=True)
class Members:
    """Names of what tells sequences apart.

    Attributes:
        is_member: True where slot t is of sequence n, bool [N, T].
        owner: sequence of each slot, 0 for padding, int64 [T].
        slots: index of each slot, int64 [T].
    """

    is_member: str
    owner: str
    slots: str


def write_members(graph: GraphWriter, layout: Layout, first_positions: str) -> Members:
    """Write the membership of slots from the first slot of each sequence, [N]."""
    ids = graph.op("Reshape", layout.sequence_ids, graph.ints(-1))  # [T]
    zero, one = graph.int_scalar(0), graph.int_scalar(1)
    total = graph.op("Squeeze", layout.tokens, graph.ints(0))
    slots = graph.op("Range", zero, total, one)
    row_of_slot = graph.op("Div", slots, layout.slots)  # [T]
    own_ids = graph.op("Unsqueeze", graph.op("Gather", ids, first_positions, axis=0), graph.ints(1))
    own_rows = graph.op("Div", first_positions, layout.slots)
    own_rows = graph.op("Unsqueeze", own_rows, graph.ints(1))  # [N, 1]
    is_member = graph.op(
        "And", graph.op("Equal", own_ids, ids), graph.op("Equal", own_rows, row_of_slot)
    )
    owner = graph.op(
        "ArgMax", graph.op("Cast", is_member, to=TensorProto.INT32), axis=0, keepdims=0
    )
    return Members(is_member, owner, slots)
