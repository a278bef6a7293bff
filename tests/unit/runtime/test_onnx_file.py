from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from litebert.errors import CheckpointError
from litebert.runtime import onnx_file
from litebert.runtime.onnx_file import parse_onnx, read_onnx
from litebert.runtime.wire import WireError, fields, packed_count, varints

DOUBLE = "com.microsoft"


def graph_of(
    nodes: list[onnx.NodeProto] | None = None, stored: list[onnx.TensorProto] | None = None
) -> onnx.GraphProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])
    weight = numpy_helper.from_array(np.ones((2, 2), np.float32), "w")
    usual = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return helper.make_graph(nodes or usual, "g", [value], [out], [weight, *(stored or [])])


def model_of(graph: onnx.GraphProto | None = None, **options: object) -> onnx.ModelProto:
    opsets = options.pop("opset_imports", [helper.make_opsetid("", 18)])
    made = helper.make_model(graph or graph_of(), opset_imports=opsets, ir_version=9, **options)  # type: ignore[arg-type]
    helper.set_model_props(made, {"litebert.head": '"sequence"'})
    return made


def looped() -> onnx.ModelProto:
    """A Loop with a body that uses an outer weight, constants of several kinds, an int8 tensor."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["h", "w"], ["h2"]),
            helper.make_node("Identity", ["c"], ["c2"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h", TensorProto.FLOAT, ["N", 2]),
        ],
        [
            helper.make_tensor_value_info("c2", TensorProto.BOOL, []),
            helper.make_tensor_value_info("h2", TensorProto.FLOAT, ["N", 2]),
        ],
    )
    stored = [
        helper.make_tensor("three", TensorProto.INT64, [], [3]),
        helper.make_tensor("yes", TensorProto.BOOL, [], [True]),
        helper.make_tensor("half", TensorProto.FLOAT16, [2], [0.5, 1.0]),
        helper.make_tensor("many", TensorProto.INT64, [3], [1, -1, 1 << 40]),
        helper.make_tensor("exact", TensorProto.DOUBLE, [1], [0.25]),
        helper.make_tensor("large", TensorProto.UINT64, [2], [1, 1 << 63]),
        numpy_helper.from_array(np.arange(6, dtype=np.int8).reshape(2, 3), "bytes"),
        numpy_helper.from_array(np.zeros((0, 4), np.float32), "none"),
    ]
    nodes = [
        helper.make_node("Loop", ["three", "yes", "x"], ["z"], body=body),
        helper.make_node("FastGelu", ["z"], ["z2"], domain=DOUBLE),
        helper.make_node("Transpose", ["z2"], ["z3"], perm=[1, 0]),
        helper.make_node("Constant", [], ["k"], value_floats=[1.0, 2.0]),
        helper.make_node("Transpose", ["z3"], ["y"], perm=[1, 0]),
    ]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOUBLE, 1)]
    return model_of(graph_of(nodes, stored), opset_imports=opsets)


def test_a_good_file_passes_with_its_notes_and_runs() -> None:
    data = looped().SerializeToString()
    file = parse_onnx(data)
    assert file.data is data and file.sha256 == hashlib.sha256(data).hexdigest()
    assert file.metadata == {"litebert.head": '"sequence"'}
    assert file.operators >= {"Loop", "MatMul", "FastGelu", "Constant"}
    assert "onnx" not in repr(file)[:40] and len(repr(file)) < 600
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert np.shape(session.run(None, {"x": np.ones((1, 2), np.float32)})[0]) == (1, 2)


def test_the_sum_is_compared_and_the_file_must_be_a_plain_one(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    data = model_of().SerializeToString()
    path.write_bytes(data)
    right = hashlib.sha256(data).hexdigest()
    assert read_onnx(path, sha256=right.upper()).data == data == read_onnx(path).data
    with pytest.raises(CheckpointError, match=r"a\.onnx: has the sha256 .*export the model again"):
        read_onnx(path, sha256="0" * 64)
    with pytest.raises(CheckpointError, match="allowed are 10"):
        read_onnx(path, max_bytes=10)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "empty").touch()
    for name in ("pipe", "link", "empty", "absent"):
        with pytest.raises(CheckpointError):
            read_onnx(tmp_path / name)


def with_tensor(change: Callable[[onnx.TensorProto], object]) -> bytes:
    model = model_of()
    change(model.graph.initializer[0])
    return model.SerializeToString()


def with_attribute(**values: object) -> bytes:
    node = helper.make_node("Constant", [], ["k"], **values)
    return model_of(
        graph_of([node, helper.make_node("MatMul", ["x", "w"], ["y"])])
    ).SerializeToString()


def external(tensor: onnx.TensorProto) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../etc/passwd"


def marked_external(tensor: onnx.TensorProto) -> None:
    tensor.data_location = TensorProto.EXTERNAL


def with_external_attribute() -> bytes:
    tensor = numpy_helper.from_array(np.ones(2, np.float32))
    external(tensor)
    return with_attribute(value=tensor)


def with_function_attribute() -> bytes:
    model = model_of()
    model.graph.node[0].attribute.add().ref_attr_name = "x"
    return model.SerializeToString()


def nested(count: int) -> bytes:
    graph = graph_of()
    for _ in range(count):
        graph = graph_of([helper.make_node("If", ["x"], ["y"], then_branch=graph)])
    return model_of(graph).SerializeToString()


def with_function() -> bytes:
    model = model_of()
    opset = [helper.make_opsetid("", 18)]
    inner = [helper.make_node("Identity", ["a"], ["b"])]
    model.functions.append(helper.make_function("own", "f", ["a"], ["b"], inner, opset))
    return model.SerializeToString()


def with_training() -> bytes:
    model = model_of()
    model.training_info.add().algorithm.CopyFrom(graph_of())
    return model.SerializeToString()


def with_sparse_weight() -> bytes:
    model = model_of()
    values = numpy_helper.from_array(np.ones(1, np.float32), "s")
    places = numpy_helper.from_array(np.zeros(1, np.int64), "i")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [1 << 40]))
    return model.SerializeToString()


def with_type(change: Callable[[onnx.TypeProto], object]) -> bytes:
    model = model_of()
    kind = model.graph.input[0].type
    kind.Clear()
    change(kind)
    return model.SerializeToString()


SPARSE = helper.make_sparse_tensor(
    numpy_helper.from_array(np.ones(1, np.float32)),
    numpy_helper.from_array(np.zeros(1, np.int64)),
    [4],
)
GOOD = model_of().SerializeToString()
HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "version 0"),
    "text": (b"this is no model at all", "not an ONNX file"),
    "gzip": (b"\x1f\x8b\x08\x00" * 40, "not an ONNX file"),
    "pickle": (b"\x80\x04\x95" + b"\x00" * 40, "not an ONNX file"),
    "onnxruntime format": (b"\x18\x00\x00\x00ORTM" + b"\x00" * 100, "own format of onnxruntime"),
    "no graph": (b"\x08\x09", "holds no graph"),
    "external data": (with_tensor(external), "another file"),
    "external without a place": (with_tensor(marked_external), "another file"),
    "external in an attribute": (with_external_attribute(), "another file"),
    "tensor larger than its data": (
        with_tensor(lambda t: t.dims.__setitem__(0, 1 << 30)), r"has 16 of [\d,]+ parts"
    ),
    "tensor of absurd shape": (
        with_tensor(lambda t: t.dims.extend([0, 1 << 62])), "a tensor of the shape"
    ),
    "negative size": (with_tensor(lambda t: t.dims.__setitem__(0, -2)), "a tensor of the shape"),
    "many dimensions": (with_tensor(lambda t: t.dims.extend([1] * 9)), "more than 8 dimensions"),
    "endless dimensions": (with_tensor(lambda t: t.dims.extend([1] * 999)), "more than 8 dimensions"),
    "tensor without data": (with_tensor(lambda t: t.ClearField("raw_data")), "has 0 of 4 parts"),
    "data twice": (with_tensor(lambda t: t.float_data.extend([1, 2, 3, 4])), "data twice"),
    "data in the wrong field": (
        with_tensor(lambda t: (t.ClearField("raw_data"), t.int64_data.extend([1] * 4))),
        "number type 1 has its data in field 7",
    ),
    "number type": (with_tensor(lambda t: setattr(t, "data_type", 99)), "number type 99"),
    "text tensor": (
        with_tensor(lambda t: (t.ClearField("raw_data"), t.string_data.append(b"x"))), "tensors of text"
    ),
    "segment": (with_tensor(lambda t: setattr(t.segment, "begin", 1)), "unknown field 3"),
    "sparse weight": (with_sparse_weight(), "sparse tensors"),
    "sparse attribute": (with_attribute(sparse_value=SPARSE), "sparse tensors"),
    "sparse input": (with_type(lambda k: setattr(k.sparse_tensor_type, "elem_type", 1)), "sparse"),
    "sequence input": (with_type(lambda k: setattr(k.sequence_type.elem_type, "denotation", "x")), "sequences"),
    "optional input": (with_type(lambda k: setattr(k.optional_type.elem_type, "denotation", "x")), "optional"),
    "map input": (with_type(lambda k: setattr(k.map_type, "key_type", 1)), "maps"),
    "function": (with_function(), "functions of its own"),
    "training": (with_training(), "training information"),
    "function attribute": (with_function_attribute(), "attribute of a function"),
    "custom operator": (
        model_of(graph_of([helper.make_node("Own", ["x"], ["y"], domain="evil")])).SerializeToString(),
        "operator 'Own' of the domain 'evil'",
    ),
    "python operator": (
        model_of(graph_of([helper.make_node("PyOp", ["x"], ["y"], domain="com.microsoft")])).SerializeToString(),
        "operator 'PyOp'",
    ),
    "custom domain": (
        model_of(
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.contrib", 1)]
        ).SerializeToString(),
        "domain 'ai.onnx.contrib'",
    ),
    "no opset": (model_of(opset_imports=[helper.make_opsetid(DOUBLE, 1)]).SerializeToString(), r"version \[\]"),
    "domain under two names": (
        model_of(opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx", 18)]).SerializeToString(),
        r"version \[18, 18\]",
    ),
    "domain twice": (
        model_of(opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("", 19)]).SerializeToString(),
        "two versions",
    ),
    "old opset": (model_of(opset_imports=[helper.make_opsetid("", 5)]).SerializeToString(), r"version \[5\]"),
    "two graphs": (GOOD + b"\x3a\x00", "field 7 twice"),
    "nested": (nested(12), "inside each other"),
    "deeply nested": (nested(20), "inside each other"),
    "unknown field": (GOOD + b"\x98\x06\x01", "unknown field 99"),
    "wire type": (GOOD + b"\x0d\x00\x00\x00\x00", "wire type 5"),
    "group": (GOOD + b"\x0b", "wire type 3"),
    "field 0": (GOOD + b"\x02\x00", "field number 0"),
    "long number": (GOOD + b"\x28" + b"\x80" * 11 + b"\x01", "too long"),
    "cut number": (GOOD + b"\x28\x80", "end early"),
    "length beyond the file": (GOOD + b"\x12\xff\xff\xff\xff\x0f", "end early"),
    "bad text": (b"\x08\x09\x42\x02\x0a\xff", "end early|utf-8"),
    "note twice": (
        GOOD + b"\x72\x13\x0a\x0dlitebert.head\x12\x02{}", "is there twice"
    ),
    "format of the future": (GOOD.replace(b"\x08\x09", b"\x08\x7f", 1), "version 127"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name: str) -> None:
    data, message = HOSTILE[name]
    with pytest.raises(CheckpointError, match=message) as caught:
        parse_onnx(data, Path("m.onnx"))
    assert str(caught.value).startswith("m.onnx: ") and len(str(caught.value)) < 400


def test_limits_on_texts_notes_and_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(doc_string="x" * 1_000_001)
    with pytest.raises(CheckpointError, match="a text of 1,000,001 bytes"):
        parse_onnx(model.SerializeToString())
    model = model_of()
    helper.set_model_props(model, {f"k{i}": "v" for i in range(257)})
    with pytest.raises(CheckpointError, match="too many"):
        parse_onnx(model.SerializeToString())
    monkeypatch.setattr(onnx_file, "MAX_FIELDS", 20)
    with pytest.raises(CheckpointError, match="more than 20 fields"):
        parse_onnx(GOOD)


@pytest.mark.parametrize("make", [model_of, looped])
def test_a_cut_file_is_refused_or_smaller_but_whole(make: Callable[[], onnx.ModelProto]) -> None:
    data = make().SerializeToString()
    for end in range(len(data)):
        try:
            parse_onnx(data[:end])
        except CheckpointError:
            continue
        onnx.ModelProto.FromString(data[:end])  # cut between fields of the outermost message


@given(st.data())
@settings(max_examples=300)
def test_flipped_bits_are_refused_or_give_a_file_that_others_read_alike(
    draw: st.DataObject,
) -> None:
    data = bytearray(looped().SerializeToString())
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    try:
        file = parse_onnx(bytes(data))
    except CheckpointError:
        return
    theirs = onnx.ModelProto.FromString(bytes(data))
    assert {p.key: p.value for p in theirs.metadata_props} == file.metadata
    assert not theirs.functions and not theirs.graph.sparse_initializer
    assert all(not t.external_data and not t.data_location for t in theirs.graph.initializer)
    assert {n.op_type for n in theirs.graph.node} <= file.operators
    assert {n.domain for n in theirs.graph.node} <= {"", "ai.onnx", "com.microsoft"}


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_without_a_traceback(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        parse_onnx(data)


@given(st.lists(st.integers(0, (1 << 64) - 1)))
def test_numbers_in_a_row(values: list[int]) -> None:
    data = b"".join(written(value) for value in values)
    assert packed_count(memoryview(data), 0, len(data)) == len(values)
    assert varints(memoryview(data), 0, len(data)) == values
    if values:
        with pytest.raises(WireError, match="does not end"):
            packed_count(memoryview(data + b"\x80"), 0, len(data) + 1)
        with pytest.raises(WireError, match="end early"):
            varints(memoryview(data + b"\x80"), 0, len(data) + 1)


def test_all_wire_types() -> None:
    data = b"\x08\x96\x01" + b"\x11" + struct.pack("<d", 1) + b"\x1a\x01x" + b"\x25\0\0\0\0"
    found = list(fields(memoryview(data), 0, len(data)))
    assert [(number, kind) for number, kind, _, _ in found] == [(1, 0), (2, 1), (3, 2), (4, 5)]
    assert found[0][2] == 150 and data[slice(*found[2][3])] == b"x"


def written(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
