from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save, save_file

from litebert.checkpoint.weights import find_weights, read_header, read_into
from litebert.errors import CheckpointError

Pack = Callable[..., bytes]


def entry(
    dtype: Any = "F32", shape: Any = (1,), offsets: Any = (0, 4), **more: Any
) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


def test_a_file_of_the_reference_library_is_read(tmp_path: Path) -> None:
    tensors = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.tensor(7.0, dtype=torch.bfloat16),
        "c": torch.zeros(0, 4),
    }
    path = tmp_path / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    entries, metadata = read_header(path)
    assert metadata == {"format": "pt"}
    assert {name: (e.dtype, e.shape) for name, e in entries.items()} == {
        "a": ("F32", (2, 3)),
        "b": ("BF16", ()),
        "c": ("F32", (0, 4)),
    }
    buffer = bytearray(24)
    read_into(entries["a"], memoryview(buffer))
    assert torch.frombuffer(buffer, dtype=torch.float32).tolist() == [0, 1, 2, 3, 4, 5]


HOSTILE = {
    "header of 2**63 bytes": (struct.pack("<Q", 1 << 63) + b"{}", "claims a header"),
    "header longer than the file": (struct.pack("<Q", 100) + b"{}", "claims a header"),
    "empty": (b"", "too few"),
    "seven bytes": (b"1234567", "too few"),
    "text": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "claims a header"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_no_safetensors_file_at_all(tmp_path: Path, case: str) -> None:
    content, message = HOSTILE[case]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_header(path)


def test_a_giant_header_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 1 << 39))
        file.truncate(1 << 40)  # sparse: costs nothing
    with pytest.raises(CheckpointError, match="allowed for this model are 100,000,000"):
        read_header(path)
    with pytest.raises(CheckpointError, match="allowed for this model are 5,000"):
        read_header(path, max_header_bytes=5000)


FAULTS: dict[str, tuple[dict[str, Any] | bytes, bytes, str]] = {
    "no JSON": (b"{nonsense", b"", "not valid JSON"),
    "deep JSON": (b'{"a":' + b"[" * 100_000, b"", "not valid JSON"),
    "not UTF-8": (b'{"\xff": 1}', b"", "not valid JSON"),
    "a list": (b"[]", b"", "not a JSON object"),
    "a name twice": (b'{"a":{},"a":{}}', b"", "occurs twice"),
    "metadata of numbers": ({"__metadata__": {"a": 1}}, b"", "__metadata__"),
    "metadata a list": ({"__metadata__": []}, b"", "__metadata__"),
    "empty name": ({"": entry()}, b"1234", "unprintable"),
    "control in name": ({"a\nb": entry()}, b"1234", "unprintable"),
    "long name": ({"a" * 513: entry()}, b"1234", "too long"),
    "path in name": ({"../../etc/passwd": entry()}, b"1234", "looks like a path"),
    "absolute name": ({"/etc/passwd": entry()}, b"1234", "looks like a path"),
    "drive in name": ({"C:weight": entry()}, b"1234", "looks like a path"),
    "dots in name": ({"a..b": entry()}, b"1234", "looks like a path"),
    "entry a number": ({"a": 3}, b"1234", "needs exactly"),
    "key missing": ({"a": {"dtype": "F32", "shape": [1]}}, b"1234", "needs exactly"),
    "key too many": ({"a": entry(file="/etc/passwd")}, b"1234", "needs exactly"),
    "type unknown": ({"a": entry("F3")}, b"1234", "unknown type"),
    "type a list": ({"a": entry(["F32"])}, b"1234", "unknown type"),
    "shape negative": ({"a": entry(shape=[-1])}, b"1234", "impossible shape"),
    "shape boolean": ({"a": entry(shape=[True])}, b"1234", "impossible shape"),
    "shape fraction": ({"a": entry(shape=[1.0])}, b"1234", "impossible shape"),
    "shape a number": ({"a": entry(shape=1)}, b"1234", "impossible shape"),
    "shape of nine": ({"a": entry(shape=[1] * 9)}, b"1234", "impossible shape"),
    "shape of 2**60": ({"a": entry(shape=[1 << 60])}, b"1234", "impossible shape"),
    "shape overflows": ({"a": entry(shape=[1 << 40, 1 << 40])}, b"1234", "needs"),
    "offsets backward": ({"a": entry(offsets=[4, 0])}, b"1234", "impossible offsets"),
    "offsets of three": ({"a": entry(offsets=[0, 4, 4])}, b"1234", "impossible offsets"),
    "offsets negative": ({"a": entry(offsets=[-4, 0])}, b"1234", "impossible offsets"),
    "shape is not the span": ({"a": entry(shape=[2])}, b"12345678", "its offsets span 4"),
    "gap": ({"a": entry(), "b": entry(offsets=[5, 9])}, b"123456789", "'b' follows a gap"),
    "gap in front": ({"a": entry(offsets=[4, 8])}, b"12345678", "'a' follows a gap"),
    "overlap": ({"a": entry(), "b": entry(offsets=[2, 6])}, b"123456", "'b' overlaps"),
    "same place": ({"a": entry(), "b": entry()}, b"1234", "overlaps"),
    "cut short": ({"a": entry()}, b"123", "'a' would end at byte"),
    "trailing bytes": ({"a": entry()}, b"12345", "1 bytes follow the last"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_every_false_claim_of_a_header_is_refused(tmp_path: Path, pack: Pack, case: str) -> None:
    header, data, message = FAULTS[case]
    path = tmp_path / "model.safetensors"
    path.write_bytes(pack(header, data))
    with pytest.raises(CheckpointError, match=message) as caught:
        read_header(path)
    assert str(path) in str(caught.value)


@given(position=st.integers(0, 400), value=st.integers(0, 255), cut=st.integers(0, 420))
def test_a_damaged_file_is_read_or_refused_but_never_breaks(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int, cut: int
) -> None:
    content = bytearray(save({"a.b": torch.ones(3, 5), "c": torch.ones(2)}, {"format": "pt"}))
    if position < len(content):
        content[position] = value
    path = tmp_path_factory.mktemp("damaged") / "model.safetensors"
    path.write_bytes(content[:cut])
    try:
        entries, _ = read_header(path)
    except CheckpointError:
        return
    assert all(e.begin + e.size <= len(content) for e in entries.values())


def test_a_tensor_that_vanishes_after_its_header_was_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(8)}, path)
    entries, _ = read_header(path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(CheckpointError, match="ends in the middle of tensor 'a'"):
        read_into(entries["a"], memoryview(bytearray(32)))


def write_shards(folder: Path, weight_map: dict[str, Any]) -> None:
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map})
    )


def test_shards_are_joined(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "m-1.safetensors", {"format": "pt"})
    save_file({"b": torch.ones(3)}, tmp_path / "m-2.safetensors")
    write_shards(tmp_path, {"a": "m-1.safetensors", "b": "m-2.safetensors"})
    found = find_weights(tmp_path)
    assert {name: e.path.name for name, e in found.entries.items()} == {
        "a": "m-1.safetensors",
        "b": "m-2.safetensors",
    }
    assert found.metadata == {"format": "pt"}


@pytest.mark.parametrize(
    ("weight_map", "message"),
    [
        ({}, "missing or empty"),
        ([], "missing or empty"),
        ({"a": "../m-1.safetensors"}, "plain names"),
        ({"a": "/etc/m-1.safetensors"}, "plain names"),
        ({"a": "m-1.bin"}, "plain names"),
        ({"a": 3}, "plain names"),
        ({"a": "sub\\m-1.safetensors"}, "plain names"),
        ({"a": "none.safetensors"}, "missing"),
        ({"b": "m-1.safetensors"}, "does not place there"),
        ({"a": "m-1.safetensors", "b": "m-1.safetensors"}, "1 tensors are not where"),
        ({"a": "m-2.safetensors"}, "does not place there"),
        ({str(i): f"{i}.safetensors" for i in range(1001)}, "names 1,001 files"),
        ({"a": "link.safetensors"}, "outside of the model folder"),
    ],
)
def test_faults_of_an_index(tmp_path: Path, weight_map: Any, message: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    save_file({"a": torch.ones(2)}, folder / "m-1.safetensors")
    save_file({"c": torch.ones(2)}, folder / "m-2.safetensors")
    save_file({"a": torch.ones(2)}, tmp_path / "outside.safetensors")
    (folder / "link.safetensors").symlink_to("../outside.safetensors")
    write_shards(folder, weight_map)
    with pytest.raises(CheckpointError, match=message):
        find_weights(folder)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("pytorch_model.bin", "a pickle"),
        ("tf_model.h5", "TensorFlow"),
        ("model.ckpt-best.index", "TensorFlow"),
        ("other.txt", "safetensors format"),
    ],
)
def test_a_folder_without_weights_gives_advice(tmp_path: Path, name: str, advice: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(CheckpointError, match=advice):
        find_weights(tmp_path)


def test_weights_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from litebert.checkpoint import weights

    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(8)}, path)
    entries, _ = read_header(path)

    class Broken:
        def __enter__(self) -> Broken:
            return self

        def __exit__(self, *error: object) -> None: ...

        def fileno(self) -> int:
            return 0

        def seek(self, position: int) -> None: ...

        def read(self, size: int) -> bytes:
            raise OSError(5, "Input/output error")

        readinto = read

    monkeypatch.setattr(weights, "open_file", lambda path: Broken())
    monkeypatch.setattr("os.fstat", lambda descriptor: path.stat())
    for call in (
        lambda: read_header(path),
        lambda: read_into(entries["a"], memoryview(bytearray(32))),
    ):
        with pytest.raises(CheckpointError, match="Input/output error"):
            call()


def test_a_header_that_ends_early_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(8)}, path)
    whole = path.stat()
    path.write_bytes(path.read_bytes()[:12])
    monkeypatch.setattr("os.fstat", lambda descriptor: whole)
    with pytest.raises(CheckpointError, match="middle of its header"):
        read_header(path)
