"""What a step of the plan has for itself, stacked by depth and looked up by the loop's counter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.writer import GraphWriter
from litebert.model.sharing import Step

__all__ = ["StepWriter"]

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class StepWriter:
    """Writes the parts of the steps at place `inner` of every depth.

    Attributes:
        model: the model.
        precision: how matrices are stored.
        inner: place within a depth, from 0.
        depth: name of the counter, from 0.
        query_scale: what queries are multiplied with beforehand.
    """

    model: ModelParts
    precision: Precision
    inner: int
    depth: str
    query_scale: float

    def add(self, graph: GraphWriter, name: str, rows: str, result: str) -> str:
        """Write `result` with the low-rank update of projection `name`, if it has one."""
        options = self.model.config.litebert
        if not options.lora_rank or name not in options.lora_on:
            return result
        scale = options.lora_scale * (self.query_scale if name == "query" else 1.0)
        narrow = self._matrix(graph, f"{name}.a", 1.0)  # [r, I]
        wide = self._matrix(graph, f"{name}.b", scale)  # [O, r]
        inner = graph.op("Gemm", rows, narrow, transB=1)
        return graph.op("Gemm", inner, wide, result, transB=1)

    def add_joined(self, graph: GraphWriter, rows: str, result: str, widths: list[int]) -> str:
        """As `add`, for query, key and value side by side."""
        options = self.model.config.litebert
        names = ("query", "key", "value")
        if not options.lora_rank or not set(names) & set(options.lora_on):
            return result
        parts = graph.node("Split", result, graph.ints(*widths), outputs=3, axis=1)
        joined = [
            self.add(graph, name, rows, part) for name, part in zip(names, parts, strict=True)
        ]
        return graph.op("Concat", *joined, axis=1)

    def squeeze(self, graph: GraphWriter, place: str, rows: str) -> str:
        """Write the bottleneck after a sub-layer, if there is one."""
        if not self.model.config.litebert.adapter_size:
            return rows
        name = f"{place}_bottleneck"
        down = self._matrix(graph, f"{name}.down", 1.0)
        down_bias = self._vector(graph, f"{name}.down_bias")
        up = self._matrix(graph, f"{name}.up", 1.0)
        up_bias = self._vector(graph, f"{name}.up_bias")
        inner = self.model.activate(graph, graph.op("Gemm", rows, down, down_bias, transB=1))
        return graph.op("Add", rows, graph.op("Gemm", inner, up, up_bias, transB=1))

    def norm(self, graph: GraphWriter, place: str, rows: str, module: str) -> str:
        """Write the LayerNorm of a sub-layer, with the gain and bias of this step."""
        if not self.model.config.litebert.depth_norms:
            return self.model.norm(graph, rows, f"{module}.norm")
        # Every step has a sum of its own, whichever block it runs.
        folder = "attentions" if place == "attention" else "ffns"
        names: list[str] = []
        for kind in ("weight", "bias"):
            rows_of_steps = [
                self.model.weight(f"encoder.{folder}.{getattr(step, place)}.norm.{kind}")
                + self.model.weight(f"encoder.adapters.{number}.{place}_norm.{kind}")
                for number, step in self._steps()
            ]
            stack = graph.store(self._name(f"{place}_norm.{kind}"), np.stack(rows_of_steps))
            names.append(graph.op("Gather", stack, self.depth, axis=0))
        return self.model.normalise(graph, rows, *names)

    def add_depth_embedding(self, graph: GraphWriter, rows: str) -> str:
        """Write the sum with the vector of this depth, if the model has such."""
        if not self.model.config.litebert.depth_embeddings or self.inner:
            return rows
        table = graph.store("encoder.depths.weight", self.model.weight("encoder.depths.weight"))
        return graph.op("Add", rows, graph.op("Gather", table, self.depth, axis=0))

    def _steps(self) -> list[tuple[int, Step]]:
        config = self.model.config
        return list(enumerate(config.plan))[self.inner :: config.inner_group_num]

    def _name(self, name: str) -> str:
        return f"encoder.adapters.inner{self.inner}.{name}"

    def _stack(self, name: str) -> Floats:
        weights = [self.model.weight(f"encoder.adapters.{n}.{name}") for n, _ in self._steps()]
        return np.stack(weights)

    def _matrix(self, graph: GraphWriter, name: str, scale: float) -> str:
        stack = (self._stack(name) * np.float32(scale)).astype(np.float32)
        return self.precision.step_matrix(graph, self.depth, self._name(name), stack)

    def _vector(self, graph: GraphWriter, name: str) -> str:
        stored = graph.store(self._name(name), self._stack(name))
        return graph.op("Gather", stored, self.depth, axis=0)
