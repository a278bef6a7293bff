"""The feed-forward sub-layer, plain or gated, with residual and LayerNorm."""

from __future__ import annotations

from litebert.export.onnx.adapters import StepWriter
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.writer import GraphWriter

__all__ = ["write_feed_forward"]


def write_feed_forward(
    graph: GraphWriter,
    model: ModelParts,
    precision: Precision,
    hidden: str,
    number: int,
    step: StepWriter,
) -> str:
    """Write what feed-forward `number` makes of hidden states [T, H]."""
    name, options = f"encoder.ffns.{number}", model.config.litebert
    is_pre_norm = options.norm_position == "pre"
    entering = step.norm(graph, "ffn", hidden, name) if is_pre_norm else hidden

    def project(part: str, rows: str) -> str:
        result = model.linear(graph, precision, rows, f"{name}.{part}")
        return step.add(graph, part, rows, result)

    inner = project("up", entering)
    if options.ffn == "geglu":
        gate = model.activate(graph, project("gate", entering))
        inner = graph.op("Mul", gate, inner)
    else:
        inner = model.activate(graph, inner)
    update = step.squeeze(graph, "ffn", project("down", inner))
    total = graph.op("Add", update, hidden)
    return total if is_pre_norm else step.norm(graph, "ffn", total, name)
