"""Self-attention of packed rows as standard operators, with residual and LayerNorm.

Queries are scaled beforehand, in their weights: no pass over the scores is spent on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from litebert.export.onnx.adapters import StepWriter
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.sight import Layout, Sight
from litebert.export.onnx.writer import GraphWriter

__all__ = ["AttentionWriter", "RelativeNames", "query_scale", "write_relative"]

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class RelativeNames:
    """Relative positions as keys and queries of one attention, [A, D, rows] each, or None."""

    key: str | None
    query: str | None


def query_scale(model: ModelParts) -> float:
    """Return what queries are multiplied with: `1 / sqrt(D)`, less with relative positions."""
    config = model.config
    return float(((1 + config.litebert.num_relative_terms) * config.head_size) ** -0.5)


def joined(model: ModelParts, number: int) -> tuple[Floats, Floats]:
    """Return weight and bias of query (scaled), key and value of an attention as one projection."""
    name, scale = f"encoder.attentions.{number}", np.float32(query_scale(model))
    weights = [model.weight(f"{name}.{part}.weight") for part in ("query", "key", "value")]
    biases = [model.weight(f"{name}.{part}.bias") for part in ("query", "key", "value")]
    weights[0], biases[0] = weights[0] * scale, biases[0] * scale
    return np.concatenate(weights), np.concatenate(biases)


@dataclass(frozen=True, slots=True)
class AttentionWriter:
    """Writes one stored attention.

    Attributes:
        model: the model.
        precision: how matrices are stored.
        layout: inputs and their sizes.
        sight: what positions mean.
        relative: for each stored attention; empty without relative positions.
    """

    model: ModelParts
    precision: Precision
    layout: Layout
    sight: Sight
    relative: list[RelativeNames]

    def write(self, graph: GraphWriter, hidden: str, number: int, step: StepWriter) -> str:
        """Write what attention `number` makes of hidden states [T, H]."""
        config, name = self.model.config, f"encoder.attentions.{number}"
        is_pre_norm = config.litebert.norm_position == "pre"
        entering = step.norm(graph, "attention", hidden, name) if is_pre_norm else hidden
        qkv = self._project(graph, entering, number, step)
        context = self._attend(graph, qkv, number, step)
        update = self.model.linear(graph, self.precision, context, f"{name}.output")
        update = step.add(graph, "output", context, update)
        update = step.squeeze(graph, "attention", update)
        total = graph.op("Add", update, hidden)
        return total if is_pre_norm else step.norm(graph, "attention", total, name)

    def _project(self, graph: GraphWriter, rows: str, number: int, step: StepWriter) -> str:
        weight, bias = joined(self.model, number)
        name = f"encoder.attentions.{number}.joined"
        result = self.precision.linear(graph, rows, name, weight, bias)
        return step.add_joined(graph, rows, result, self._widths())

    def _widths(self) -> list[int]:
        config = self.model.config
        return [config.attention_size, config.key_value_size, config.key_value_size]

    def _attend(self, graph: GraphWriter, qkv: str, number: int, step: StepWriter) -> str:
        config = self.model.config
        heads, narrow = config.num_attention_heads, config.num_key_value_heads
        size = config.head_size
        shape = self._shape(graph, heads + 2 * narrow, size)
        split = graph.op("Reshape", qkv, shape)  # [R, S, A + 2 K, D]
        split = graph.op("Transpose", split, perm=[0, 2, 1, 3])
        sizes = graph.ints(heads, narrow, narrow)
        query, key, value = graph.node("Split", split, sizes, outputs=3, axis=1)
        if self.sight.rotation is not None:
            query, key = (self._rotate(graph, part, self.sight.rotation) for part in (query, key))
        key, value = (self._repeat(graph, part) for part in (key, value))
        turned = graph.op("Transpose", key, perm=[0, 1, 3, 2])
        scores = graph.op("MatMul", query, turned)  # [R, A, S, S]
        if self.sight.relative_index is not None:
            names, index = self.relative[number], self.sight.relative_index
            scores = self._add_relative(graph, scores, query, key, names, index)
        scores = graph.op("Add", scores, self._bias(graph, step))
        probabilities = graph.op("Softmax", scores, axis=-1)
        context = graph.op("MatMul", probabilities, value)
        context = graph.op("Transpose", context, perm=[0, 2, 1, 3])
        return graph.op("Reshape", context, graph.ints(-1, config.attention_size))

    def _shape(self, graph: GraphWriter, heads: int, size: int) -> str:
        """[R, -1, heads, size], made from R alone."""
        rest = graph.ints(-1, heads, size)
        return graph.op("Concat", self.layout.rows, rest, axis=0)

    def _bias(self, graph: GraphWriter, step: StepWriter) -> str:
        if self.sight.local_bias is None or self.sight.is_local is None:
            return self.sight.bias
        is_local = graph.op("Gather", self.sight.is_local, step.depth, axis=0)
        return graph.op("Where", is_local, self.sight.local_bias, self.sight.bias)

    @staticmethod
    def _rotate(graph: GraphWriter, part: str, rotation: tuple[str, str]) -> str:
        cosine, sine = rotation
        one, two = graph.node("Split", part, outputs=2, axis=3, num_outputs=2)
        first = graph.op("Sub", graph.op("Mul", one, cosine), graph.op("Mul", two, sine))
        second = graph.op("Add", graph.op("Mul", two, cosine), graph.op("Mul", one, sine))
        return graph.op("Concat", first, second, axis=3)

    def _repeat(self, graph: GraphWriter, part: str) -> str:
        """[R, K, S, D] -> [R, A, S, D]: each key-value head for its group of query heads."""
        config = self.model.config
        heads, narrow = config.num_attention_heads, config.num_key_value_heads
        if heads == narrow:
            return part
        size = config.head_size
        apart = graph.op("Unsqueeze", part, graph.ints(2))
        wide = graph.op("Expand", apart, graph.ints(1, 1, heads // narrow, 1, 1))
        return graph.op("Reshape", wide, graph.ints(0, heads, -1, size))

    @staticmethod
    def _add_relative(
        graph: GraphWriter,
        scores: str,
        query: str,
        key: str,
        names: RelativeNames,
        index: str,
    ) -> str:
        shape = graph.op("Shape", scores)
        rows = graph.op("Expand", index, shape)  # [R, A, S, S]
        if names.key is not None:
            found = graph.op("MatMul", query, names.key)  # [R, A, S, rows]
            scores = graph.op("Add", scores, graph.op("GatherElements", found, rows, axis=3))
        if names.query is not None:
            found = graph.op("MatMul", key, names.query)
            turned = graph.op("Transpose", rows, perm=[0, 1, 3, 2])
            part = graph.op("GatherElements", found, turned, axis=3)
            scores = graph.op("Add", scores, graph.op("Transpose", part, perm=[0, 1, 3, 2]))
        return scores


def write_relative(
    graph: GraphWriter, model: ModelParts, precision: Precision, rows: str, number: int
) -> RelativeNames:
    """Write the relative positions of attention `number`, before the loop; all inputs are constant."""
    config, options = model.config, model.config.litebert
    name = f"encoder.attentions.{number}"
    terms = options.relative_terms.split("+")
    heads, narrow = config.num_attention_heads, config.num_key_value_heads
    size = config.head_size
    if options.relative_form == "v1":
        key = query = None
        if "c2p" in terms:
            weight = model.weight(f"{name}.relative_key.weight")
            key = precision.linear(graph, rows, f"{name}.relative_key", weight, None)
        if "p2c" in terms:
            scale = np.float32(query_scale(model))
            weight = model.weight(f"{name}.relative_query.weight") * scale
            bias = model.weight(f"{name}.relative_query.bias") * scale
            query = precision.linear(graph, rows, f"{name}.relative_query", weight, bias)
    else:
        widths = graph.ints(config.attention_size, config.key_value_size, config.key_value_size)
        both = precision.linear(graph, rows, f"{name}.joined", *joined(model, number))
        query, key, _ = graph.node("Split", both, widths, outputs=3, axis=1)

    def by_head(part: str | None, term: str, count: int) -> str | None:
        if part is None or term not in terms:
            return None
        split = graph.op("Reshape", part, graph.ints(-1, count, size))
        turned = graph.op("Transpose", split, perm=[1, 2, 0])  # [count, D, rows]
        if count == heads:
            return turned
        apart = graph.op("Unsqueeze", turned, graph.ints(1))
        wide = graph.op("Expand", apart, graph.ints(1, heads // count, 1, 1))
        return graph.op("Reshape", wide, graph.ints(heads, size, -1))

    return RelativeNames(by_head(key, "c2p", narrow), by_head(query, "p2c", heads))
