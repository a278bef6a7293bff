"""What positions and sequence numbers mean to attention; written once, before the loop.

No index operations: which slots see each other is a sum added to the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from onnx import TensorProto

from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.writer import GraphWriter
from litebert.model.disentangled import bucket_table

__all__ = ["Layout", "Sight", "write_sight"]

HIDDEN: Final = -1e30
"""Added to scores of slots that are not seen: finite, so that a row of them alone stays finite."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of the inputs and of their sizes.

    Attributes:
        input_ids: [R, S].
        token_type_ids: [R, S].
        position_ids: [R, S].
        sequence_ids: [R, S]; 0 is padding.
        rows: R as int64 [1].
        slots: S as int64 [1].
        tokens: R * S as int64 [1].
    """

    input_ids: str
    token_type_ids: str
    position_ids: str
    sequence_ids: str
    rows: str
    slots: str
    tokens: str


@dataclass(frozen=True, slots=True)
class Sight:
    """Names of what all depths use.

    Attributes:
        bias: added to the scores, [R, 1, S, S].
        local_bias: the same for depths that see their window only; None without such.
        is_local: [L], 1 where a depth is local; None without such.
        rotation: cosine and sine, [R, 1, S, D / 2] each; None without rotary positions.
        relative_index: row of the table of relative positions, [R, 1, S, S]; None without.
        relative_rows: that table, [rows, H]; None without.
    """

    bias: str
    local_bias: str | None = None
    is_local: str | None = None
    rotation: tuple[str, str] | None = None
    relative_index: str | None = None
    relative_rows: str | None = None


def write_sight(
    graph: GraphWriter, model: ModelParts, precision: Precision, layout: Layout
) -> Sight:
    """Write everything that depends on the inputs alone."""
    options = model.config.litebert
    queries = graph.op("Unsqueeze", layout.sequence_ids, graph.ints(1, 3))  # [R, 1, S, 1]
    keys = graph.op("Unsqueeze", layout.sequence_ids, graph.ints(1, 2))  # [R, 1, 1, S]
    same = graph.op("Equal", queries, keys)
    seen, unseen = graph.float_scalar(0.0), graph.float_scalar(HIDDEN)
    bias = graph.op("Where", same, seen, unseen)
    local_bias = is_local = None
    if options.local_window is not None:
        near = _near(graph, layout, options.local_window // 2)
        local_bias = graph.op("Where", graph.op("And", same, near), seen, unseen)
        flags = [options.is_local(depth) for depth in range(model.config.num_hidden_layers)]
        is_local = graph.constant(np.array(flags))
    rotation = _rotation(graph, model, layout) if options.has_rotary else None
    index = rows = None
    if options.has_relative:
        index = _relative_index(graph, model, layout)
        rows = _relative_rows(graph, model, precision)
    return Sight(bias, local_bias, is_local, rotation, index, rows)


def _near(graph: GraphWriter, layout: Layout, half: int) -> str:
    """Within the window; distances are counted over real tokens, so that holes are none."""
    real = graph.op("Cast", layout.sequence_ids, to=TensorProto.BOOL)
    places = graph.op("CumSum", graph.op("Cast", real, to=TensorProto.INT64), graph.int_scalar(1))
    distance = graph.op("Abs", _differences(graph, places))
    return graph.op("LessOrEqual", distance, graph.int_scalar(half))


def _differences(graph: GraphWriter, places: str) -> str:
    """Place of the query minus place of the key, [R, 1, S, S]."""
    queries = graph.op("Unsqueeze", places, graph.ints(1, 3))
    return graph.op("Sub", queries, graph.op("Unsqueeze", places, graph.ints(1, 2)))


def _rotation(graph: GraphWriter, model: ModelParts, layout: Layout) -> tuple[str, str]:
    config = model.config
    size = config.head_size
    columns = np.arange(0, size, 2, dtype=np.float64)
    frequency = (config.litebert.rotary_base ** (-columns / size)).astype(np.float32)
    places = graph.op("Cast", layout.position_ids, to=TensorProto.FLOAT)
    places = graph.op("Unsqueeze", places, graph.ints(1, 3))  # [R, 1, S, 1]
    angles = graph.op("Mul", places, graph.constant(frequency))
    return graph.op("Cos", angles), graph.op("Sin", angles)


def _relative_index(graph: GraphWriter, model: ModelParts, layout: Layout) -> str:
    options = model.config.litebert
    difference = _differences(graph, layout.position_ids)
    span = options.relative_buckets or options.relative_distance
    if options.relative_buckets is not None:
        table = graph.constant(
            np.array(bucket_table(options.relative_distance, options.relative_buckets), np.int64)
        )
        far = graph.op("Min", graph.op("Abs", difference), graph.ints(options.relative_distance))
        bucket = graph.op("Gather", table, far, axis=0)
        difference = graph.op("Mul", bucket, graph.op("Sign", difference))
    shifted = graph.op("Add", difference, graph.ints(span))
    low = graph.op("Max", shifted, graph.ints(0))
    return graph.op("Min", low, graph.ints(2 * span - 1))


def _relative_rows(graph: GraphWriter, model: ModelParts, precision: Precision) -> str:
    """The table as attention uses it. All inputs are constant: a runtime computes it at loading."""
    name = "encoder.relative.table"
    table = model.weight(f"{name}.weight")
    every = graph.constant(np.arange(len(table), dtype=np.int64))
    rows = precision.look_up(graph, every, name, table)
    if model.config.litebert.relative_form == "v2":
        return model.norm(graph, rows, "encoder.relative.norm")
    return rows
