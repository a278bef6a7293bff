"""Task heads: from hidden states to the outputs that a packed graph names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from onnx import TensorProto

from litebert.errors import ExportError
from litebert.export.onnx.embed import TOKEN_TABLE
from litebert.export.onnx.exits import exit_logits
from litebert.export.onnx.members import write_members
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.export.onnx.sight import Layout
from litebert.export.onnx.span_joint import write_span_joint
from litebert.export.onnx.writer import GraphWriter

__all__ = ["HEAD_WRITERS", "HeadInputs", "Output", "classify", "in_rows", "write_head"]

Output = tuple[str, str, list[str | int]]
"""Public name, name in the graph, shape."""


@dataclass(frozen=True, slots=True)
class HeadInputs:
    """Names of what heads work on.

    Attributes:
        hidden: after the last depth, [T, H].
        layout: inputs and their sizes.
        first_positions: flat index of the first slot of each sequence, [N].
        masked_positions: flat indices, [P].
        depth: depths that were run in all; None where the model's last is known to be it.
    """

    hidden: str
    layout: Layout
    first_positions: Callable[[], str]
    masked_positions: Callable[[], str]
    depth: str | None = None


HeadWriter = Callable[[GraphWriter, ModelParts, Precision, HeadInputs], list[Output]]


def write_head(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> list[Output]:
    """Write the head of a model and return its outputs.

    Raises:
        ExportError: a head that cannot be exported.
    """
    writer = HEAD_WRITERS.get(model.head)
    if writer is None:
        raise ExportError(
            f"head {model.head!r} cannot be exported; known: "
            f"{', '.join(str(name) for name in HEAD_WRITERS)}"
        )
    return writer(graph, model, precision, inputs)


def _pooled(graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs) -> str:
    """tanh(dense(what the pooler reads)), [N, H]; see `model/pooling.py`."""
    word = model.config.litebert.pooler_reads
    if word == "segments":
        rows = _compared(graph, inputs)
    elif word == "mean":
        rows = _means(graph, inputs)
    else:
        rows = graph.op("Gather", inputs.hidden, inputs.first_positions(), axis=0)
    return graph.op("Tanh", model.linear(graph, precision, rows, "pooler"))


def _means(graph: GraphWriter, inputs: HeadInputs) -> str:
    """Mean over the tokens of each sequence, [N, H]."""
    members = write_members(graph, inputs.layout, inputs.first_positions())
    return _mean_of(graph, inputs, members.is_member)


def _compared(graph: GraphWriter, inputs: HeadInputs) -> str:
    """|u - v|, u * v of the means of the two texts, and the mean over all tokens, [N, 3H]."""
    is_member = write_members(graph, inputs.layout, inputs.first_positions()).is_member
    types = graph.op("Reshape", inputs.layout.token_type_ids, graph.ints(-1))  # [T]
    is_second = graph.op("Greater", types, graph.int_scalar(0))
    is_first = graph.op("Not", is_second)
    u = _mean_of(graph, inputs, graph.op("And", is_member, is_first))
    v = _mean_of(graph, inputs, graph.op("And", is_member, is_second))
    apart = graph.op("Abs", graph.op("Sub", u, v))
    return graph.op(
        "Concat", apart, graph.op("Mul", u, v), _mean_of(graph, inputs, is_member), axis=-1
    )


def _mean_of(graph: GraphWriter, inputs: HeadInputs, is_chosen: str) -> str:
    """Mean over some tokens of each sequence, [N, H]; 0 where there are none."""
    share = graph.op("Cast", is_chosen, to=TensorProto.FLOAT)  # [N, T]
    counts = graph.op("ReduceSum", share, graph.ints(1), keepdims=1)
    counts = graph.op("Max", counts, graph.float_scalar(1.0))
    return graph.op("Div", graph.op("MatMul", share, inputs.hidden), counts)


def classify(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs, part: str
) -> str:
    """Write the logits of a head that is one projection; that of the depth, where each has its own."""
    is_by_token = part == "token"
    features = inputs.hidden if is_by_token else _pooled(graph, model, precision, inputs)
    if model.has_exits and inputs.depth is not None:
        return exit_logits(graph, model, precision, features, inputs.depth, part)
    return model.linear(graph, precision, features, f"heads.{part}.classifier")


def _encoder(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> list[Output]:
    if not model.has_pooler:
        return []
    width = model.config.hidden_size
    return [("pooler_output", _pooled(graph, model, precision, inputs), ["N", width])]


def _classifier(part: str, outputs: int | None = None) -> HeadWriter:
    def write(
        graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
    ) -> list[Output]:
        logits = classify(graph, model, precision, inputs, part)
        return [("logits", logits, ["N", outputs or model.config.num_labels])]

    return write


def _token(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> list[Output]:
    logits = classify(graph, model, precision, inputs, "token")
    return [("logits", in_rows(graph, logits, inputs.layout), ["R", "S", model.config.num_labels])]


def _span(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> list[Output]:
    logits = model.linear(graph, precision, inputs.hidden, "heads.span.classifier")
    parts = graph.node("Split", logits, outputs=2, axis=1, num_outputs=2)
    shape = graph.op("Concat", inputs.layout.rows, graph.ints(-1), axis=0)
    return [
        (name, graph.op("Reshape", part, shape), ["R", "S"])
        for name, part in zip(("start_logits", "end_logits"), parts, strict=True)
    ]


def _span_joint(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> list[Output]:
    members = write_members(graph, inputs.layout, inputs.first_positions())
    columns, width = write_span_joint(
        graph, model, precision, inputs.hidden, inputs.layout, inputs.first_positions(), members
    )
    return [("logits", in_rows(graph, columns, inputs.layout), ["R", "S", width])]


def _mlm_logits(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> str:
    rows = graph.op("Gather", inputs.hidden, inputs.masked_positions(), axis=0)
    inner = model.linear(graph, precision, rows, "heads.mlm.dense")
    inner = model.norm(graph, model.activate(graph, inner), "heads.mlm.norm")
    table = model.weight(f"{TOKEN_TABLE}.weight")
    return precision.linear(graph, inner, TOKEN_TABLE, table, model.weight("heads.mlm.bias"))


def _mlm(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> list[Output]:
    logits = _mlm_logits(graph, model, precision, inputs)
    return [("logits", logits, ["P", model.config.vocab_size])]


def _pretraining(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> list[Output]:
    words = _mlm_logits(graph, model, precision, inputs)
    pooled = _pooled(graph, model, precision, inputs)
    order = model.linear(graph, precision, pooled, "heads.sentence_order.classifier")
    return [
        ("prediction_logits", words, ["P", model.config.vocab_size]),
        ("sop_logits", order, ["N", model.config.num_labels]),
    ]


def _embedding(
    graph: GraphWriter, model: ModelParts, precision: Precision, inputs: HeadInputs
) -> list[Output]:
    """The pooled first token, or the mean over the tokens of each sequence."""
    width = model.config.hidden_size
    if model.config.litebert.pooling != "mean" and model.has_pooler:
        vectors = _pooled(graph, model, precision, inputs)
    else:
        vectors = _means(graph, inputs)
    return [("sentence_embedding", vectors, ["N", width])]


def in_rows(graph: GraphWriter, values: str, layout: Layout) -> str:
    """Write [T, C] as [R, S, C]."""
    shape = graph.op("Concat", layout.rows, layout.slots, graph.ints(-1), axis=0)
    return graph.op("Reshape", values, shape)


HEAD_WRITERS: Final[dict[str | None, HeadWriter]] = {
    None: _encoder,
    "sequence": _classifier("sequence"),
    "sentence_order": _classifier("sentence_order"),
    "choice": _classifier("choice", 1),
    "token": _token,
    "span": _span,
    "span_joint": _span_joint,
    "mlm": _mlm,
    "pretraining": _pretraining,
    "embedding": _embedding,
}
"""Head word -> what writes it; None is an encoder without a head."""
