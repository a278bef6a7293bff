"""The packed graph for the browser: inputs with a default become inputs that are always given.

The runtime for JavaScript knows no defaults: what has one cannot be fed at all, so no depth could be
chosen. The weights and the nodes stay as they are, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from litebert.errors import ExportError
from litebert.runtime.onnx_file import OnnxFile, parse_onnx
from litebert.runtime.wire import RANGE, VARINT, fields

__all__ = ["web_graph"]

_GRAPH: Final = 7
_INITIALIZER: Final = 5
_INPUT: Final = 11
_VALUE_NAME: Final = 1
_TENSOR_NAME: Final = 8
_Keep = Callable[[int, int, int], bool]


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
    inputs = {_name(data, where, _VALUE_NAME) for number, _, _, where in fields(data, start, end)
              if number == _INPUT}  # fmt: skip

    def keep(number: int, first: int, last: int) -> bool:
        is_default = number == _INITIALIZER and _name(data, (first, last), _TENSOR_NAME) in inputs
        return not is_default

    graph = _copied(data, start, end, keep)
    parts = bytearray()
    for number, kind, value, (first, last) in fields(data, 0, len(data)):
        parts += _field(number, kind, value, graph if number == _GRAPH else data[first:last])
    result = parse_onnx(bytes(parts), path)
    _compare(file, result, path)
    return result


def _copied(data: memoryview, start: int, end: int, keep: _Keep) -> bytes:
    result = bytearray()
    for number, kind, value, (first, last) in fields(data, start, end):
        if keep(number, first, last):
            result += _field(number, kind, value, data[first:last])
    return bytes(result)


def _field(number: int, kind: int, value: int, content: bytes | memoryview) -> bytes:
    head = _varint(number << 3 | kind)
    if kind == VARINT:
        return head + _varint(value)
    return head + (_varint(len(content)) if kind == RANGE else b"") + bytes(content)


def _name(data: memoryview, where: tuple[int, int], field: int) -> str:
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
        if not np.array_equal(ours, theirs, equal_nan=True):
            raise ExportError(
                "without its default values the graph gives something else; this is a fault of litebert, "
                "please report it",
                path=path,
            )


def _session(file: OnnxFile) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(file.data, options, providers=["CPUExecutionProvider"])
