"""Which fields of an ONNX file are allowed, by message; what is not listed is refused.

Source: `onnx.proto` of onnx/onnx (field numbers).
"""

from __future__ import annotations

from typing import Final

from litebert.runtime.wire import FIXED32, RANGE, VARINT

__all__ = [
    "ELEMENT_BITS",
    "FUSED_OPERATORS",
    "MESSAGES",
    "PACKED",
    "REFUSED",
    "REPEATED",
    "STANDARD_DOMAINS",
    "TYPED_DATA",
]

STANDARD_DOMAINS: Final = ("", "ai.onnx")
"""Two names of one domain: the operators of the ONNX standard."""

FUSED_OPERATORS: Final = frozenset(
    {
        "BiasGelu",
        "BiasSplitGelu",
        "DequantizeLinear",
        "DynamicQuantizeMatMul",
        "EmbedLayerNormalization",
        "FastGelu",
        "FusedGemm",
        "FusedMatMul",
        "GatherBlockQuantized",
        "Gelu",
        "MatMulIntegerToFloat",
        "MatMulNBits",
        "MultiHeadAttention",
        "QAttention",
        "QGemm",
        "QuantizeLinear",
        "QuickGelu",
        "SkipLayerNormalization",
    }
)
"""Operators of the domain `com.microsoft` that compute on their inputs alone."""

ELEMENT_BITS: Final = {
    1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 16: 16,
    21: 4, 22: 4,
}  # fmt: skip
"""Number type of a tensor -> bits of one element; text and complex numbers are not among them."""

REFUSED: Final = {
    ("model", 20): "training information",
    ("model", 25): "functions of its own",
    ("graph", 15): "sparse tensors",
    ("attribute", 21): "an attribute of a function",
    ("attribute", 22): "sparse tensors",
    ("attribute", 23): "sparse tensors",
    ("tensor", 6): "tensors of text",
    ("tensor", 13): "weights in another file (external data)",
    ("type", 4): "sequences",
    ("type", 5): "maps",
    ("type", 7): "opaque types",
    ("type", 8): "sparse tensors",
    ("type", 9): "optional values",
}
"""Fields that exist and are refused, with what they bring."""

_TEXT: Final = (RANGE, "text")
_NUMBER: Final = (VARINT, "number")
_DATA: Final = (RANGE, "data")


def _of(message: str) -> tuple[int, str]:
    return (RANGE, message)


MESSAGES: Final[dict[str, dict[int, tuple[int, str]]]] = {
    "model": {
        1: _NUMBER, 2: _TEXT, 3: _TEXT, 4: _TEXT, 5: _NUMBER, 6: _TEXT, 7: _of("graph"),
        8: _of("opset"), 14: _of("entry"),
    },
    "opset": {1: _TEXT, 2: _NUMBER},
    "entry": {1: _TEXT, 2: _TEXT},
    "graph": {
        1: _of("node"), 2: _TEXT, 5: _of("tensor"), 10: _TEXT, 11: _of("value"), 12: _of("value"),
        13: _of("value"), 14: _of("annotation"), 16: _of("entry"),
    },
    "annotation": {1: _TEXT, 2: _of("entry")},
    "node": {
        1: _TEXT, 2: _TEXT, 3: _TEXT, 4: _TEXT, 5: _of("attribute"), 6: _TEXT, 7: _TEXT,
        9: _of("entry"),
    },
    "attribute": {
        1: _TEXT, 2: (FIXED32, "number"), 3: _NUMBER, 4: _TEXT, 5: _of("tensor"), 6: _of("graph"),
        7: (FIXED32, "number"), 8: _NUMBER, 9: _TEXT, 10: _of("tensor"), 11: _of("graph"),
        13: _TEXT, 20: _NUMBER,
    },
    "tensor": {
        1: _NUMBER, 2: _NUMBER, 4: _DATA, 5: _DATA, 7: _DATA, 8: _TEXT, 9: _DATA, 10: _DATA,
        11: _DATA, 12: _TEXT, 14: _NUMBER, 16: _of("entry"),
    },
    "value": {1: _TEXT, 2: _of("type"), 3: _TEXT, 4: _of("entry")},
    "type": {1: _of("tensor_type"), 6: _TEXT},
    "tensor_type": {1: _NUMBER, 2: _of("shape")},
    "shape": {1: _of("dimension")},
    "dimension": {1: _NUMBER, 2: _TEXT, 3: _TEXT},
}  # fmt: skip
"""Message -> field number -> wire type and what it is."""

PACKED: Final = {("attribute", 7), ("attribute", 8), ("tensor", 1)}
"""Repeated numbers, which may also lie in a row as one range."""

REPEATED: Final[dict[str, tuple[int, ...]]] = {
    "model": (8, 14),
    "graph": (1, 5, 11, 12, 13, 14, 16),
    "annotation": (2,),
    "node": (1, 2, 5, 9),
    "attribute": (7, 8, 9, 10, 11),
    "tensor": (1, 16),
    "value": (4,),
    "shape": (1,),
}
"""Message -> fields that may occur again; of any other, readers disagree which one counts."""

TYPED_DATA: Final[dict[int, tuple[int, tuple[int, ...]]]] = {
    4: (4, (1,)),
    5: (0, (2, 3, 4, 5, 6, 9, 10, 16)),
    7: (0, (7,)),
    10: (8, (11,)),
    11: (0, (12, 13)),
}
"""Field of a tensor with its elements one by one -> bytes of each (0: varints), number types."""
