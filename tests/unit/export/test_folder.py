"""The folder of an export: complete or not there, and nothing without proof."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from litebert.checkpoint import fs
from litebert.checkpoint.folder import save_model
from litebert.errors import CheckpointError, ExportError, SettingsError
from litebert.export.base import EXPORTERS, Artifact, Options
from litebert.export.folder import EXPORT_FILE, export_and_verify
from litebert.export.onnx import exporter as onnx_exporter
from litebert.export.onnx.checks import check_products, check_stored
from litebert.export.onnx.exporter import OnnxExporter, graph_runner
from litebert.export.onnx.floats import FloatPrecision
from litebert.export.onnx.heads import HeadInputs, write_head
from litebert.export.onnx.packed import packed_model
from litebert.export.onnx.source import Source, make_precision
from litebert.export.onnx.writer import GraphWriter
from litebert.export.targets import EXPORTERS as ALL
from litebert.runtime.exported import ExportedFolder

from .tiny import packed_runner, tiny

FP32 = Options(("fp32",), is_plain=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model"
    save_model(tiny("sequence"), path, card="# a card\n", task='{"kind": "none"}')
    return path


def test_the_folder_has_everything_and_says_what_is_true(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    seen: list[str] = []
    report = export_and_verify(
        "onnx", folder, out, Options(), on_file=lambda item: seen.append(item.name)
    )
    names = {
        "onnx/litebert.onnx",
        "onnx/model.onnx",
        "onnx/litebert_int8.onnx",
        "onnx/model_quantized.onnx",
    }
    assert set(seen) == names == {item.name for item in report.files}
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert files == names | {"config.json", "README.md", "task.json", EXPORT_FILE}
    listed = json.loads((out / EXPORT_FILE).read_text())
    for name, facts in listed["files"].items():
        data = (out / name).read_bytes()
        assert facts["bytes"] == len(data) and facts["sha256"] == sha256(data).hexdigest()
    assert listed["files"]["onnx/litebert.onnx"]["max_difference"] < 1e-4
    assert {graph.precision for graph in ExportedFolder.open(out).graphs} == {"fp32", "int8"}
    assert not [path for path in tmp_path.iterdir() if path != out]


def test_the_same_model_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    data: list[bytes] = []
    for name in ("one", "two"):
        export_and_verify("onnx", folder, tmp_path / name, Options(("int8",), is_plain=False))
        data.append((tmp_path / name / "onnx/litebert_int8.onnx").read_bytes())
    assert data[0] == data[1]


def test_places_that_must_not_be_replaced_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("mine")
    for place, words in (
        (folder, "model folder"),
        (folder.parent, "model folder"),
        (tmp_path / "file", "no folder"),
        (tmp_path / "other", "other files"),
        (Path("x\0y"), "cannot be a folder"),
    ):
        with pytest.raises(SettingsError, match=words):
            export_and_verify("onnx", folder, place, FP32)
    out = tmp_path / "out"
    export_and_verify("onnx", folder, out, FP32)
    with pytest.raises(SettingsError, match="--overwrite"):
        export_and_verify("onnx", folder, out, FP32)
    (out / "onnx/litebert.onnx").write_bytes(b"old")
    export_and_verify("onnx", folder, out, FP32, overwrite=True)
    assert (out / "onnx/litebert.onnx").stat().st_size > 1000


def test_wrong_targets_and_number_formats_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="did you mean 'onnx'"):
        export_and_verify("onx", folder, tmp_path / "out", FP32)
    for wanted in (("int7",), ()):
        with pytest.raises(SettingsError, match="fp32, fp16, int8"):
            export_and_verify("onnx", folder, tmp_path / "out", Options(wanted))
    with pytest.raises(ExportError, match="unknown"):
        make_precision("int7", Source.of(tiny()))
    assert not (tmp_path / "out").exists()


def test_a_damaged_model_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_bytes((folder / "config.json").read_bytes())
    weights = (folder / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(CheckpointError):
        export_and_verify("onnx", broken, tmp_path / "out", FP32)
    with pytest.raises(CheckpointError):
        export_and_verify("onnx", tmp_path / "nothing", tmp_path / "out", FP32)
    assert not (tmp_path / "out").exists()


class Killed(fs.FS):
    """Ends the process, so to speak, before the n-th change of the disk."""

    def __init__(self, number: int) -> None:
        self.left = number

    def before(self, operation: str, path: Path) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


def content(out: Path) -> dict[str, Any]:
    """All files; of the list of them what does not depend on the clock."""
    found: dict[str, Any] = {
        str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }
    listed = json.loads(found[EXPORT_FILE])
    for facts in listed["files"].values():
        del facts["milliseconds"]
    return found | {EXPORT_FILE: listed}


def test_killed_at_any_moment_the_old_export_is_there_whole(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_and_verify("onnx", folder, out, FP32)
    before = content(out)
    ended = 0
    for number in range(0, 40, 3):
        try:
            with fs.use_fs(Killed(number)):
                export_and_verify("onnx", folder, out, FP32, overwrite=True)
            break
        except KeyboardInterrupt:
            ended += 1
        assert content(out) == before
    assert ended > 3


class Wrong(OnnxExporter):
    """Adds something to every output."""

    added: Callable[[Any], Any]

    def artifacts(self, source: Source, options: Options) -> Iterator[Artifact]:
        for artifact in super().artifacts(source, options):

            def run(inputs: Any, artifact: Artifact = artifact) -> Any:
                found = artifact.run(inputs)
                return {name: type(self).added(value) for name, value in found.items()}

            yield replace(artifact, run=run)


@pytest.mark.parametrize(
    ("precision", "added", "words"),
    [
        ("fp32", lambda value: value + 0.01, "differ from torch"),
        ("int8", lambda value: -value, "cosine"),
        ("fp32", lambda value: value * np.nan, "not finite"),
        ("fp32", lambda value: value[..., :1], "shape"),
    ],
)
def test_an_export_that_differs_is_not_written(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    added: Any,
    words: str,
) -> None:
    monkeypatch.setattr(Wrong, "added", staticmethod(added), raising=False)
    monkeypatch.setattr(EXPORTERS, "_items", {"onnx": Wrong})
    with pytest.raises(ExportError, match=words):
        export_and_verify("onnx", folder, tmp_path / "out", Options((precision,), is_plain=False))
    assert list(tmp_path.iterdir()) == []


def test_outputs_of_other_names_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from litebert.export.verify import Referee

    model = tiny()
    run = packed_runner(model)
    with pytest.raises(ExportError, match="expected"):
        Referee(model).packed(lambda inputs: {"logits": run(inputs)["last_hidden_state"]})
    with pytest.raises(ExportError, match="expected"):
        Referee(model).plain(lambda inputs: {})


def test_the_checks_see_what_they_look_for() -> None:
    source = Source.of(tiny())
    proto = packed_model(source.parts, FloatPrecision())
    with pytest.raises(ExportError, match="floating point"):
        check_products(proto)
    twice = np.ones(sum(v.size for v in source.parts.weights.values()) + 4000, np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(twice, "again"))
    with pytest.raises(ExportError, match="stored twice"):
        check_stored(proto, source.parts, "fp32")


def test_what_a_format_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source.of(tiny())
    source.parts.weights["encoder.ffns.0.up.weight"][0, 0] = 1e6
    with pytest.raises(ExportError, match="float16 ends"):
        packed_model(source.parts, FloatPrecision("fp16"))
    monkeypatch.setattr(onnx_exporter, "MAX_BYTES", 1000)
    with pytest.raises(ExportError, match="one file holds"):
        list(OnnxExporter().artifacts(source, FP32))


def test_what_is_missing_or_unknown_is_named() -> None:
    parts = Source.of(tiny()).parts
    with pytest.raises(ExportError, match=r"no weight 'pooler\.other'"):
        parts.weight("pooler.other")
    odd = replace(parts, head="poem")
    inputs = HeadInputs("h", None, lambda: "", lambda: "")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ExportError, match="'poem' cannot be exported"):
        write_head(GraphWriter(), odd, FloatPrecision(), inputs)
    with pytest.raises(ExportError, match="onnxruntime refuses"):
        graph_runner(b"no graph")({})


def test_a_quantized_folder_is_exported_with_its_own_integers(tmp_path: Path) -> None:
    from litebert.export.onnx.source import load_source

    model = tiny("sequence", litebert={"quantization": {}})
    save_model(model, tmp_path / "model")
    source = load_source(tmp_path / "model")
    proto = packed_model(source.parts, make_precision("int8", source))
    stored = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    up = source.integers["encoder.ffns.0.up.weight"]
    assert np.array_equal(stored["encoder.ffns.0.up.values"], up.values)
    three = [source.integers[f"encoder.attentions.0.{n}.weight"] for n in ("query", "key", "value")]
    joined = stored["encoder.attentions.0.joined.values"]
    assert np.array_equal(joined, np.concatenate([part.values for part in three]))
    assert "encoder.ffns.0.up.balance" not in stored


def test_a_quantized_folder_computes_the_same_in_torch_and_as_a_graph(tmp_path: Path) -> None:
    """A channel that is large and almost constant costs the others their integers without centers."""
    import torch

    from litebert.checkpoint.folder import load_encoder
    from litebert.compress.quantize import calibrate, with_quantization
    from litebert.export.onnx.source import load_source
    from litebert.model.packing import Packing
    from litebert.model.quantization import Quantization

    model = tiny()
    with torch.no_grad():
        for part in (*model.encoder.attentions, *model.encoder.ffns):  # pyright: ignore
            part.norm.bias[3] = 40.0  # pyright: ignore
    new = with_quantization(model, Quantization())
    packing = Packing.from_lengths([20, 20])
    calibrate(new, [(torch.arange(40), packing)])
    save_model(new, tmp_path / "model")
    source = load_source(tmp_path / "model")
    assert {name.rpartition(".")[2] for name in source.centers} == {
        "qkv_center", "output_center", "up_center", "down_center",
    }  # fmt: skip
    ids = np.random.default_rng(3).integers(5, 60, (2, 20))
    inputs = {
        "input_ids": ids,
        "token_type_ids": ids * 0,
        "position_ids": np.tile(np.arange(20), (2, 1)),
        "sequence_ids": np.ones_like(ids),
        "first_positions": np.array([0, 20]),
    }
    flat = torch.from_numpy(ids.reshape(-1))
    with torch.no_grad():
        rounded = load_encoder(tmp_path / "model").eval()
        emulated = rounded.forward_packed(flat, packing, flat * 0).last_hidden_state.numpy()

    def off(which: Source) -> float:
        proto = packed_model(which.parts, make_precision("int8", which))
        found = graph_runner(proto.SerializeToString())(inputs)["last_hidden_state"]
        return float(np.abs(found.reshape(emulated.shape) - emulated).max())

    assert off(source) < 1e-4
    assert off(replace(source, centers={})) > 1e-3


def test_names_stay_free_of_clashes() -> None:
    proto = packed_model(Source.of(tiny("span_joint")).parts, FloatPrecision())
    onnx.checker.check_model(proto, full_check=True)
    assert proto.graph.name == "litebert"
    assert set(ALL) >= {"onnx"}


def test_classifiers_of_earlier_depths_that_are_left_out_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another exporter under that name: the package of the target is not installed everywhere.
    monkeypatch.setitem(EXPORTERS._items, "executorch", OnnxExporter)
    for has_exits in (True, False):
        model = tmp_path / f"model-{has_exits}"
        save_model(tiny("sequence", litebert={"exit_heads": has_exits}), model)
        report = export_and_verify(
            "executorch",
            model,
            tmp_path / f"out-{has_exits}",
            Options(("fp32",), is_plain=False),
        )
        assert ["earlier depths are left out" in note for note in report.notes] == [
            True
        ] * has_exits


def test_static_ranges_are_not_taken_over_and_that_is_said(tmp_path: Path) -> None:
    import torch

    from litebert.compress.quantize import calibrate, with_quantization
    from litebert.model.packing import Packing
    from litebert.model.quantization import Quantization
    from litebert.recipes.export import report_lines

    model = with_quantization(tiny("sequence"), Quantization(activations="static"))  # pyright: ignore
    calibrate(model, [(torch.arange(20), Packing.from_lengths([12, 8]))])
    save_model(model, tmp_path / "model")
    report = export_and_verify(
        "onnx", tmp_path / "model", tmp_path / "out", Options(("int8",), is_plain=False)
    )
    assert len(report.notes) == 1 and "static ranges" in report_lines(report)[-1]
    report = export_and_verify(
        "onnx", tmp_path / "model", tmp_path / "more", Options(("fp32",), is_plain=False)
    )
    assert report.notes == ()
