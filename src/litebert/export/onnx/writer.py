"""Nodes, constants and names of one ONNX graph and of the graphs inside it.

An inner graph (the body of a `Loop`, a branch of an `If`) sees every name of the graphs around it, so
that a constant is stored once, in the outermost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["MICROSOFT", "OPSET", "GraphWriter"]

OPSET: Final = 20
"""Version of the standard operators; 20 is the first with Gelu."""
IR_VERSION: Final = 9
"""Version of the file format; goes with opset 20."""
MICROSOFT: Final = "com.microsoft"
"""Domain of the fused operators that every onnxruntime has."""

Array = NDArray[Any]
Shape = Sequence[int | str]


class GraphWriter:
    """Collects one graph; `inner()` starts one inside it."""

    def __init__(self, outer: GraphWriter | None = None) -> None:
        self._outer = outer
        self._root: GraphWriter = self if outer is None else outer._root
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._constants: dict[str, Array] = {}
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._casts: dict[tuple[str, int], str] = {}
        self._turned: dict[str, str] = {}
        self._count = 0

    def inner(self) -> GraphWriter:
        """Return the writer of a graph inside this one."""
        return GraphWriter(self)

    @property
    def constants(self) -> dict[str, Array]:
        """Name -> value of everything the outermost graph stores."""
        return self._root._constants

    def node(
        self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any
    ) -> tuple[str, ...]:
        """Add an operator and return the names of its outputs."""
        root = self._root
        root._count += 1
        name = f"{kind}_{root._count}"
        names = tuple(f"{name}_{number}" for number in range(outputs))
        made = helper.make_node(
            kind, list(inputs), list(names), name=name, domain=domain, **attributes
        )
        self._nodes.append(made)
        return names

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output and return its name."""
        return self.node(kind, *inputs, domain=domain, **attributes)[0]

    def store(self, name: str, value: Array) -> str:
        """Store a weight under its name, once; return the name."""
        self._root._constants.setdefault(name, value)
        return name

    def cast_once(self, name: str, dtype: int) -> str:
        """Write the cast of a stored constant into the outermost graph, once; return its name."""
        root = self._root
        if (name, dtype) not in root._casts:
            root._casts[name, dtype] = root.op("Cast", name, to=dtype)
        return root._casts[name, dtype]

    def turn_once(self, name: str) -> str:
        """Write the transposition of a stored matrix into the outermost graph, once; return its name."""
        root = self._root
        if name not in root._turned:
            root._turned[name] = root.op("Transpose", name, perm=[1, 0])
        return root._turned[name]

    def constant(self, value: Array) -> str:
        """Store a small constant, equal ones once; return its name."""
        root = self._root
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in root._names:
            root._names[key] = f"constant_{len(root._names)}"
            root._constants[root._names[key]] = array
        return root._names[key]

    def ints(self, *values: int) -> str:
        """Store a list of int64."""
        return self.constant(np.array(values, dtype=np.int64))

    def int_scalar(self, value: int) -> str:
        """Store one int64."""
        return self.constant(np.array(value, dtype=np.int64))

    def float_scalar(self, value: float) -> str:
        """Store one float32."""
        return self.constant(np.array(value, dtype=np.float32))

    def add_input(self, name: str, dtype: int, shape: Shape) -> str:
        """Declare an input of this graph."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def add_output(self, name: str, dtype: int, shape: Shape | None) -> None:
        """Declare a value of this graph as its output."""
        self._outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def named_output(self, value: str, name: str, shape: Shape, dtype: int | None = None) -> None:
        """Give a value a public name and declare it as an output."""
        self._nodes.append(helper.make_node("Identity", [value], [name], name=f"output_{name}"))
        self.add_output(name, TensorProto.FLOAT if dtype is None else dtype, shape)

    def graph(self, name: str) -> onnx.GraphProto:
        """Return the graph; the outermost with the constants that something reads."""
        used = {item.name for item in self._inputs}
        for node in all_nodes(self._nodes):
            used.update(node.input)
        stored = [
            numpy_helper.from_array(np.ascontiguousarray(value), key)
            if np.ndim(value)
            else numpy_helper.from_array(np.asarray(value), key)
            for key, value in self._constants.items()
            if key in used
        ]
        return helper.make_graph(self._nodes, name, self._inputs, self._outputs, stored)

    def model(self, name: str, metadata: dict[str, str]) -> onnx.ModelProto:
        """Return the whole model, with the domains that it uses."""
        graph = self.graph(name)
        opsets = [helper.make_opsetid("", OPSET)]
        if any(node.domain == MICROSOFT for node in all_nodes(graph.node)):
            opsets.append(helper.make_opsetid(MICROSOFT, 1))
        made = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="litebert"
        )
        helper.set_model_props(made, metadata)
        return made


def all_nodes(nodes: Iterable[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return the nodes of a graph and of all graphs inside it."""
    found: list[onnx.NodeProto] = []
    for node in nodes:
        found.append(node)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found.extend(all_nodes(attribute.g.node))
    return found
