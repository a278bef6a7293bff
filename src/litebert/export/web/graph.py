"""The packed graph for the browser: no input has a default, and matrices lie as they are multiplied.

The runtime for JavaScript knows no defaults: what has one cannot be fed at all, so no depth could be
chosen. Turning matrices when a page is opened would take longer than all the rest of opening it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from litebert.errors import ExportError
from litebert.runtime.onnx_file import OnnxFile, parse_onnx
from litebert.runtime.wire import RANGE, VARINT, fields, varints

__all__ = ["web_graph"]

_GRAPH: Final = 7
_INITIALIZER: Final = 5
_INPUT: Final = 11
_NODE: Final = 1
_VALUE_NAME: Final = 1
_NODE_INPUT, _NODE_OUTPUT, _NODE_KIND, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_GRAPH: Final = 6
_DIMS, _TENSOR_KIND, _TENSOR_NAME, _RAW = 1, 2, 8, 9
_KINDS: Final = {1: np.dtype("<f4"), 3: np.dtype("i1"), 10: np.dtype("<f2")}
"""Number type of a tensor -> how its bytes are read."""
_SAME: Final = 1e-5
Range = tuple[int, int]


def web_graph(file: OnnxFile, path: Path) -> OnnxFile:
    """Return the graph without default values, run beside the one that has them.

    Args:
        file: a packed graph that was checked.
        path: where it is from, for messages.

    Raises:
        ExportError: it gives something else.
    """
    data = memoryview(file.data)
    (start, end) = next(
        where for number, _, _, where in fields(data, 0, len(data)) if number == _GRAPH
    )
    graph = _rewritten(data, start, end)
    parts = bytearray()
    for number, kind, value, (first, last) in fields(data, 0, len(data)):
        parts += _field(number, kind, value, graph if number == _GRAPH else data[first:last])
    result = parse_onnx(bytes(parts), path)
    _compare(file, result, path)
    return result


def _rewritten(data: memoryview, start: int, end: int) -> bytes:
    """The graph with both changes; a matrix that is looked up in as well stays as it is."""
    parts = list(fields(data, start, end))
    uses = _uses(data, start, end)
    inputs = {_text(data, where, _VALUE_NAME) for number, _, _, where in parts if number == _INPUT}
    matrices = {
        _text(data, where, _TENSOR_NAME): where
        for number, _, _, where in parts
        if number == _INITIALIZER and _is_matrix(data, where)
    }
    turned = {
        _text(data, where, _NODE_INPUT): _text(data, where, _NODE_OUTPUT)
        for number, _, _, where in parts
        if number == _NODE and _text(data, where, _NODE_KIND) == "Transpose"
    }
    turned = {name: to for name, to in turned.items() if name in matrices and uses[name] == 1}
    result = bytearray()
    for number, kind, value, where in parts:
        content: bytes | memoryview = data[where[0] : where[1]]
        if number == _INITIALIZER:
            name = _text(data, where, _TENSOR_NAME)
            if name in inputs:
                continue
            if name in turned:
                content = _turned(data, where, turned[name])
        elif number == _NODE and _text(data, where, _NODE_OUTPUT) in turned.values():
            continue
        result += _field(number, kind, value, content)
    return bytes(result)


def _uses(data: memoryview, start: int, end: int) -> Counter[str]:
    """How often each name is read, in graphs inside this one, too."""
    found: Counter[str] = Counter()
    for number, _, _, node in fields(data, start, end):
        if number != _NODE:
            continue
        for field, _, _, where in fields(data, *node):
            if field == _NODE_INPUT:
                found[str(data[where[0] : where[1]], "utf-8")] += 1
            elif field == _NODE_ATTRIBUTE:
                for inner, _, _, graph in fields(data, *where):
                    if inner == _ATTRIBUTE_GRAPH:
                        found.update(_uses(data, *graph))
    return found


def _is_matrix(data: memoryview, where: Range) -> bool:
    numbers = [(number, value) for number, _, value, _ in fields(data, *where)]
    kind = dict(numbers).get(_TENSOR_KIND)
    return kind in _KINDS and len(_shape(data, where)) == 2 and _RAW in dict(numbers)


def _shape(data: memoryview, where: Range) -> list[int]:
    shape: list[int] = []
    for number, kind, value, place in fields(data, *where):
        if number == _DIMS:
            shape += [value] if kind == VARINT else varints(data, *place)
    return shape


def _turned(data: memoryview, where: Range, name: str) -> bytes:
    """The tensor of another name, turned."""
    rows, columns = _shape(data, where)
    found = {number: (value, place) for number, _, value, place in fields(data, *where)}
    kind = found[_TENSOR_KIND][0]
    first, last = found[_RAW][1]
    values = np.frombuffer(data[first:last], _KINDS[kind]).reshape(rows, columns)
    content = np.ascontiguousarray(values.T).tobytes()
    return b"".join(
        (
            _field(_DIMS, VARINT, columns, b""),
            _field(_DIMS, VARINT, rows, b""),
            _field(_TENSOR_KIND, VARINT, kind, b""),
            _field(_TENSOR_NAME, RANGE, 0, name.encode()),
            _field(_RAW, RANGE, 0, content),
        )
    )


def _field(number: int, kind: int, value: int, content: bytes | memoryview) -> bytes:
    head = _varint(number << 3 | kind)
    if kind == VARINT:
        return head + _varint(value)
    return head + (_varint(len(content)) if kind == RANGE else b"") + bytes(content)


def _text(data: memoryview, where: Range, field: int) -> str:
    for number, _, _, (first, last) in fields(data, *where):
        if number == field:
            return str(data[first:last], "utf-8")
    return ""


def _varint(number: int) -> bytes:
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*result, number])


def _compare(before: OnnxFile, after: OnnxFile, path: Path) -> None:
    """Run both on a few tokens.

    Raises:
        ExportError: the outputs differ.
    """
    old, new = _session(before), _session(after)
    known = {item.name for item in old.get_inputs()}
    known |= {item.name for item in old.get_overridable_initializers()}
    ids = np.array([[2, 5, 3], [2, 3, 0]], np.int64)
    given: dict[str, Any] = {
        "input_ids": ids,
        "token_type_ids": np.zeros_like(ids),
        "position_ids": np.array([[0, 1, 2], [0, 1, 0]], np.int64),
        "sequence_ids": np.array([[1, 1, 1], [1, 1, 0]], np.int64),
        "first_positions": np.array([0, 3], np.int64),
        "masked_positions": np.array([1], np.int64),
    }
    given = {name: value for name, value in given.items() if name in known}
    defaults: dict[str, Any] = {
        "depth": np.array(1 << 20, np.int64),
        "start_depth": np.array(0, np.int64),
        "exit_threshold": np.array(2.0, np.float32),
        "exit_temperature": np.array(1.0, np.float32),
    }
    for item in new.get_inputs():
        if item.name == "hidden_in":
            given[item.name] = np.zeros((1, 1, item.shape[-1]), np.float32)
        elif item.name not in given and item.name in defaults:
            given[item.name] = defaults[item.name]
    first = {name: value for name, value in given.items() if name not in (*defaults, "hidden_in")}
    for ours, theirs in zip(new.run(None, given), old.run(None, first), strict=True):
        if not np.allclose(ours, theirs, rtol=0, atol=_SAME, equal_nan=True):
            raise ExportError(
                "rewritten for the browser the graph gives something else; this is a fault of litebert, "
                "please report it",
                path=path,
            )


def _session(file: OnnxFile) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(file.data, options, providers=["CPUExecutionProvider"])
