"""What must be true of a written graph: each weight stored once, and no float product left in int8."""

from __future__ import annotations

from typing import Final

import onnx

from litebert.errors import ExportError
from litebert.export.onnx.parts import ModelParts
from litebert.export.onnx.writer import all_nodes

__all__ = [
    "ALLOWANCE",
    "CONSTANT_BYTES",
    "check_products",
    "check_stored",
    "stored_bytes",
    "unique_bytes",
]

ALLOWANCE: Final = 1.05
"""Bytes of stored arrays over those of the model's weights, each counted once."""
CONSTANT_BYTES: Final = 8192
"""For shapes, masks and tables of the graph itself."""
_FOLDED: Final = frozenset({"Transpose", "Cast", "DequantizeLinear", "Mul", "Reshape"})
"""Operators that only change the form of a weight."""


def unique_bytes(model: ModelParts, precision: str) -> int:
    """Return what the weights of a model weigh in a precision, each once, with scales in int8."""
    total = 0
    for value in model.weights.values():
        if value.ndim < 2 or precision == "fp32":
            total += 4 * value.size
        elif precision == "fp16":
            total += 2 * value.size
        else:
            total += value.size + 4 * (value.size // value.shape[-1])
    return total


def stored_bytes(proto: onnx.ModelProto) -> int:
    """Return the bytes of all stored arrays."""
    return sum(len(tensor.raw_data) for tensor in proto.graph.initializer)


def check_stored(proto: onnx.ModelProto, model: ModelParts, precision: str) -> None:
    """Refuse a graph that stores a weight twice.

    Raises:
        ExportError: it holds more than the weights of the model.
    """
    found, unique = stored_bytes(proto), unique_bytes(model, precision)
    if found > ALLOWANCE * unique + CONSTANT_BYTES:
        raise ExportError(
            f"the {precision} graph stores {found:,} bytes, the weights are {unique:,}: some are "
            "stored twice; this is a fault of litebert, please report it"
        )


def check_products(proto: onnx.ModelProto) -> None:
    """Refuse an int8 graph that multiplies with a weight in floating point.

    Raises:
        ExportError: it does.
    """
    constant = {tensor.name for tensor in proto.graph.initializer}
    nodes = all_nodes(proto.graph.node)
    for node in nodes:  # in order, so that what a node reads is known
        if node.op_type in _FOLDED and all(name in constant for name in node.input):
            constant.update(node.output)
    left = [
        node.name
        for node in nodes
        if (node.op_type == "MatMul" and set(node.input) & constant)
        or (node.op_type == "Gemm" and node.input[1] in constant)
    ]
    if left:
        raise ExportError(
            f"{len(left)} products with weights are still floating point in the int8 graph, first "
            f"{left[0]}; this is a fault of litebert, please report it"
        )
