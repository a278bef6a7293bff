"""int8 files: weights rounded once with a scale for each output, activations when they are used.

Evidence for every choice here: docs/explanation/int8.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from litebert.checkpoint.int8 import INT8_LIMIT, QuantizedMatrix, quantize_matrix
from litebert.checkpoint.int8_pairs import quantize_in_pairs
from litebert.export.onnx.writer import GraphWriter

__all__ = ["IntegerPrecision"]

Floats = NDArray[np.float32]
Rule = Callable[[Floats], QuantizedMatrix]

LEAST_ROW: Final = 1e-6
"""Rows of activations are never enlarged by more than one over this: a row of zeros stays one."""
AFTER_NORM: Final = (".joined", ".up", ".gate")
"""Projections that read what a LayerNorm gave: its rows are of about one size, and need not be brought to it."""


@dataclass(frozen=True, slots=True)
class IntegerPrecision:
    """Weights of 1 byte, multiplied with activations of 1 byte.

    Standard operators only: onnxruntime fuses rounding, product and scaling when it loads the file.

    Attributes:
        balance: name of a projection -> factor for each of its inputs, which are divided by it and
            whose weights are multiplied with it, so that no input alone sets the scale of all.
        given: integers of a quantized folder, by the name of the projection or table; used as they are.
        centers: of a quantized folder: name of a projection -> what is taken off its inputs before they
            are rounded; the bias takes it up, so in exact numbers nothing changes.
        products: tables that are multiplied with, not only looked up.
    """

    balance: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    given: Mapping[str, QuantizedMatrix] = field(default_factory=dict[str, QuantizedMatrix])
    centers: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    products: frozenset[str] = frozenset()
    name: Literal["int8"] = "int8"

    def linear(
        self, graph: GraphWriter, rows: str, name: str, weight: Floats, bias: Floats | None
    ) -> str:
        """Write `rows @ weight.T + bias`; the product in integers."""
        factors = self.balance.get(name)
        if factors is not None:
            inverse = graph.store(f"{name}.balance", (1.0 / factors).astype(np.float32))
            rows, weight = graph.op("Mul", rows, inverse), weight * factors
        center = self.centers.get(name)
        if center is not None:
            rows = graph.op("Sub", rows, graph.store(f"{name}.center", center))
            moved = weight @ center
            bias = moved if bias is None else bias + moved
        stored, scales = self._store(graph, name, weight, quantize_in_pairs)
        turned = graph.turn_once(stored)  # [I, O]
        if name.startswith("encoder.") and not name.endswith(AFTER_NORM):
            result = self._product_by_row(graph, rows, turned, scales)
        elif name.startswith("encoder.") or name in self.products:
            result = self._product(graph, rows, turned, scales)
        else:
            result = self._product_twice(graph, rows, turned, scales)
        return (
            result if bias is None else graph.op("Add", result, graph.store(f"{name}.bias", bias))
        )

    def look_up(self, graph: GraphWriter, ids: str, name: str, table: Floats) -> str:
        """Write `table[ids]`; only the rows that are asked for become floating point."""
        rule = quantize_in_pairs if name in self.products else _full_range
        stored, scales = self._store(graph, name, table, rule)
        rows = graph.op("Cast", graph.op("Gather", stored, ids, axis=0), to=TensorProto.FLOAT)
        scale = graph.op("Gather", scales, ids, axis=0)
        return graph.op("Mul", rows, graph.op("Unsqueeze", scale, graph.ints(-1)))

    def step_matrix(self, graph: GraphWriter, depth: str, name: str, stack: Floats) -> str:
        """Write `stack[depth]` in float32: small, and another one at each depth."""
        depths, rows, columns = stack.shape
        quantized = quantize_matrix(stack.reshape(depths * rows, columns), limit=INT8_LIMIT)
        values = graph.store(f"{name}.values", quantized.values.reshape(stack.shape))
        scales = graph.store(f"{name}.scales", quantized.row_scales.reshape(depths, rows, 1))
        chosen = graph.op("Gather", values, depth, axis=0)
        chosen = graph.op("Cast", chosen, to=TensorProto.FLOAT)
        return graph.op("Mul", chosen, graph.op("Gather", scales, depth, axis=0))

    def _product(self, graph: GraphWriter, rows: str, turned: str, scales: str) -> str:
        levels, scale, zero = graph.node("DynamicQuantizeLinear", rows, outputs=3)
        product = graph.op("MatMulInteger", levels, turned, zero)
        product = graph.op("Cast", product, to=TensorProto.FLOAT)
        return graph.op("Mul", product, graph.op("Mul", scale, scales))

    def _product_by_row(self, graph: GraphWriter, rows: str, turned: str, scales: str) -> str:
        """As `_product`, with every row brought to the same size before, and back after.

        A few tokens are much larger than others; they would set the scale of all, and what a sequence
        gives would depend on who shares its batch.
        """
        size = graph.op("ReduceMax", graph.op("Abs", rows), graph.ints(1), keepdims=1)
        size = graph.op("Max", size, graph.float_scalar(LEAST_ROW))  # [T, 1]
        result = self._product(graph, graph.op("Div", rows, size), turned, scales)
        return graph.op("Mul", result, size)

    def _product_twice(self, graph: GraphWriter, rows: str, turned: str, scales: str) -> str:
        """As `_product`, and what the rounding left over once more: 16 bits for the activations.

        For projections that run once, not at every depth: their errors cost more than their time.
        """
        levels, scale, zero = graph.node("DynamicQuantizeLinear", rows, outputs=3)
        rounded = graph.op("DequantizeLinear", levels, scale, zero)
        product = graph.op("MatMulInteger", levels, turned, zero)
        product = graph.op("Cast", product, to=TensorProto.FLOAT)
        first = graph.op("Mul", product, graph.op("Mul", scale, scales))
        rest = self._product(graph, graph.op("Sub", rows, rounded), turned, scales)
        return graph.op("Add", first, rest)

    def _store(self, graph: GraphWriter, name: str, weight: Floats, rule: Rule) -> tuple[str, str]:
        if f"{name}.values" not in graph.constants:
            quantized = self.given.get(name) or rule(weight)
            graph.store(f"{name}.values", quantized.values)
            graph.store(f"{name}.scales", quantized.row_scales)
        return f"{name}.values", f"{name}.scales"


def _full_range(table: Floats) -> QuantizedMatrix:
    return quantize_matrix(table, limit=INT8_LIMIT)
