"""What a graph is written from: the configuration, the weights as arrays, and how they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from litebert.errors import ExportError
from litebert.export.onnx.writer import GraphWriter
from litebert.model.config import AlbertConfig

__all__ = ["ModelParts", "Precision"]

Floats = NDArray[np.float32]


class Precision(Protocol):
    """How weights are stored and multiplied with: one class for each number format."""

    @property
    def name(self) -> str:
        """The word that files and reports use: fp32, fp16, int8."""
        ...

    def linear(
        self, graph: GraphWriter, rows: str, name: str, weight: Floats, bias: Floats | None
    ) -> str:
        """Write `rows @ weight.T + bias`, rows [T, I], weight [O, I]; return [T, O].

        The weight is stored under `name`; a second call with the same name stores nothing.
        """
        ...

    def look_up(self, graph: GraphWriter, ids: str, name: str, table: Floats) -> str:
        """Write `table[ids]` in float32; stored as by `linear`, so that a tied table is stored once."""
        ...

    def step_matrix(self, graph: GraphWriter, depth: str, name: str, stack: Floats) -> str:
        """Write `stack[depth]` in float32: a matrix that each depth has for itself."""
        ...


@dataclass(frozen=True, slots=True)
class ModelParts:
    """A model without torch.

    Attributes:
        config: sizes and options.
        head: head word; None for an encoder alone.
        weights: name in our state dict, without the `model.` prefix of the encoder -> float32.
        has_pooler: whether there is a pooler.
    """

    config: AlbertConfig
    head: str | None
    weights: dict[str, Floats]
    has_pooler: bool

    @property
    def has_exits(self) -> bool:
        """Whether each depth has a classifier of its own."""
        return "exits.weight" in self.weights

    def weight(self, name: str) -> Floats:
        """Return one weight.

        Raises:
            ExportError: there is none of that name.
        """
        try:
            return self.weights[name]
        except KeyError:
            raise ExportError(
                f"the model has no weight {name!r}, which its configuration calls for; "
                "save the model folder anew"
            ) from None

    def linear(
        self, graph: GraphWriter, precision: Precision, rows: str, name: str, *, bias: bool = True
    ) -> str:
        """Write the projection whose weights are `name.weight` and `name.bias`."""
        added = self.weight(f"{name}.bias") if bias else None
        return precision.linear(graph, rows, name, self.weight(f"{name}.weight"), added)

    def norm(self, graph: GraphWriter, rows: str, name: str) -> str:
        """Write the LayerNorm whose weights are `name.weight` and `name.bias`."""
        gain = graph.store(f"{name}.weight", self.weight(f"{name}.weight"))
        bias = graph.store(f"{name}.bias", self.weight(f"{name}.bias"))
        return self.normalise(graph, rows, gain, bias)

    def normalise(self, graph: GraphWriter, rows: str, gain: str, bias: str) -> str:
        """Write a LayerNorm over the last dimension with a given gain and bias."""
        return graph.op(
            "LayerNormalization", rows, gain, bias, axis=-1, epsilon=self.config.layer_norm_eps
        )

    def activate(self, graph: GraphWriter, rows: str) -> str:
        """Write the activation of the model."""
        kinds: dict[str, tuple[str, dict[str, Any]]] = {
            "relu": ("Relu", {}),
            "gelu": ("Gelu", {"approximate": "none"}),
            "gelu_new": ("Gelu", {"approximate": "tanh"}),
        }
        kind, attributes = kinds[self.config.hidden_act]
        return graph.op(kind, rows, **attributes)
