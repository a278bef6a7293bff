"""float32 and float16 files. Both compute in float32; float16 halves the file, not the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from litebert.errors import ExportError
from litebert.export.onnx.writer import GraphWriter

__all__ = ["FloatPrecision"]

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FloatPrecision:
    """Weights as numbers of 4 or 2 bytes; matrices only, since vectors weigh nothing."""

    name: Literal["fp32", "fp16"] = "fp32"

    def linear(
        self, graph: GraphWriter, rows: str, name: str, weight: Floats, bias: Floats | None
    ) -> str:
        """Write `rows @ weight.T + bias`."""
        stored = [self._store(graph, f"{name}.weight", weight)]
        if bias is not None:
            stored.append(graph.store(f"{name}.bias", bias))
        return graph.op("Gemm", rows, *stored, transB=1)

    def look_up(self, graph: GraphWriter, ids: str, name: str, table: Floats) -> str:
        """Write `table[ids]`."""
        return graph.op("Gather", self._store(graph, f"{name}.weight", table), ids, axis=0)

    def step_matrix(self, graph: GraphWriter, depth: str, name: str, stack: Floats) -> str:
        """Write `stack[depth]`."""
        return graph.op("Gather", self._store(graph, name, stack), depth, axis=0)

    def _store(self, graph: GraphWriter, name: str, value: Floats) -> str:
        if self.name == "fp32":
            return graph.store(name, value)
        with np.errstate(over="ignore"):  # said below, with a name
            half = value.astype(np.float16)
        if not np.isfinite(half).all():
            raise ExportError(
                f"weight {name!r} has values up to {np.abs(value).max():.3g}, float16 ends at 65504; "
                "export fp32 or int8"
            )
        # The cast has constant input: a runtime computes it once, when it loads the file.
        return graph.cast_once(graph.store(name, half), TensorProto.FLOAT)
