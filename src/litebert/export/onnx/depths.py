"""The plan as one `Loop`: each stored sub-layer stands once in its body, whatever the plan.

Where a place of the plan runs several sub-layers in turn, nested `If`s choose by the loop's counter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from litebert.export.onnx.adapters import StepWriter
from litebert.export.onnx.attention import AttentionWriter, query_scale
from litebert.export.onnx.exits import Stage
from litebert.export.onnx.feed_forward import write_feed_forward
from litebert.export.onnx.writer import GraphWriter

__all__ = ["DepthWriter"]

WriteOne = Callable[[GraphWriter, int], str]
Sure = Callable[[GraphWriter, str, str], str]


@dataclass(frozen=True, slots=True)
class DepthWriter:
    """Writes the depths of a model.

    Attributes:
        attention: writes attentions, and knows the model.
    """

    attention: AttentionWriter

    def loop(
        self, graph: GraphWriter, hidden: str, stage: Stage, is_sure: Sure | None = None
    ) -> tuple[str, str]:
        """Write the depths of a stage.

        Args:
            graph: where to.
            hidden: what the first of them gets, [T, H].
            stage: where to start, and how many.
            is_sure: writes, from the result of a depth and how many were run, whether to stop.

        Returns:
            Hidden states [T, H], and the depths that were run in all, a scalar.
        """
        width = self.attention.model.config.hidden_size
        body = graph.inner()
        body.add_input("step", TensorProto.INT64, [])
        body.add_input("going", TensorProto.BOOL, [])
        number = body.add_input("number", TensorProto.INT64, [])
        current = body.add_input("hidden", TensorProto.FLOAT, ["T", width])
        result = self.depth(body, current, number, None)
        after = body.op("Add", number, body.int_scalar(1))
        going = (
            body.op("Identity", "going") if is_sure is None
            else body.op("Not", is_sure(body, result, after))
        )  # fmt: skip
        body.add_output(going, TensorProto.BOOL, [])
        body.add_output(after, TensorProto.INT64, [])
        body.add_output(result, TensorProto.FLOAT, ["T", width])
        always = graph.constant(np.array(True))
        ran, final = graph.node(
            "Loop", stage.count, always, stage.start, hidden, outputs=2, body=body.graph("depths")
        )
        return final, ran

    def depth(self, graph: GraphWriter, hidden: str, number: str, known: int | None) -> str:
        """Write one depth.

        Args:
            graph: where to.
            hidden: its input, [T, H].
            number: name of the depth, from 0.
            known: the depth, if it is known while writing; then there is nothing to choose.
        """
        model = self.attention.model
        inner, plan = model.config.inner_group_num, model.config.plan
        for place in range(inner):
            step = StepWriter(model, self.attention.precision, place, number, query_scale(model))
            hidden = step.add_depth_embedding(graph, hidden)
            at = plan[place::inner]

            def attend(
                inside: GraphWriter, index: int, rows: str = hidden, step: StepWriter = step
            ) -> str:
                return self.attention.write(inside, rows, index, step)

            hidden = _chosen(graph, [s.attention for s in at], number, known, attend)

            def feed(
                inside: GraphWriter, index: int, rows: str = hidden, step: StepWriter = step
            ) -> str:
                precision = self.attention.precision
                return write_feed_forward(inside, model, precision, rows, index, step)

            hidden = _chosen(graph, [s.ffn for s in at], number, known, feed)
        return hidden


def _chosen(
    graph: GraphWriter, table: list[int], number: str, known: int | None, write: WriteOne
) -> str:
    """Write the sub-layer that a depth runs: `table` gives its index for each depth."""
    if known is not None:
        return write(graph, table[known])
    kinds = sorted(set(table))
    if len(kinds) == 1:
        return write(graph, kinds[0])
    places = graph.constant(np.array([kinds.index(index) for index in table], np.int64))
    place = graph.op("Gather", places, number, axis=0)
    return _switch(graph, place, kinds, 0, write)


def _switch(graph: GraphWriter, place: str, kinds: list[int], first: int, write: WriteOne) -> str:
    """Write one of `kinds`, the first of which has place `first`: halved until one is left."""
    if len(kinds) == 1:
        return write(graph, kinds[0])
    half = len(kinds) // 2
    is_early = graph.op("Less", place, graph.int_scalar(first + half))
    branches: list[GraphWriter] = []
    for part, start in ((kinds[:half], first), (kinds[half:], first + half)):
        branch = graph.inner()
        branch.add_output(_switch(branch, place, part, start, write), TensorProto.FLOAT, None)
        branches.append(branch)
    return graph.op(
        "If",
        is_early,
        then_branch=branches[0].graph("early"),
        else_branch=branches[1].graph("late"),
    )
