"""OpenVINO files beside torch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from litebert.checkpoint.folder import save_model
from litebert.errors import ExportError, MissingDependencyError
from litebert.export.base import Options
from litebert.export.folder import export_and_verify
from litebert.export.onnx.source import Source
from litebert.export.openvino import exporter
from litebert.export.openvino.exporter import OpenVinoExporter

from .tiny import tiny


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("head", ["token", "sequence"])
def test_both_formats_are_verified_and_written(head: str, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    save_model(tiny(head), tmp_path / "model")
    report = export_and_verify(
        "openvino", tmp_path / "model", tmp_path / "out", Options(("fp32", "fp16"))
    )
    assert [item.name for item in report.files] == [
        "openvino/model.xml", "openvino/model_fp16.xml"
    ]  # fmt: skip
    sizes = [
        (tmp_path / "out" / f"openvino/{n}.bin").stat().st_size for n in ("model", "model_fp16")
    ]
    assert sizes[1] < sizes[0] and report.files[0].difference.max_difference < 1e-4


@pytest.mark.filterwarnings("ignore")
def test_what_openvino_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    openvino = pytest.importorskip("openvino")
    with pytest.raises(ExportError, match="OpenVINO refuses"):
        exporter._converted(openvino, b"no graph", "fp32")
    monkeypatch.setattr(exporter, "ALLOWANCE", 0.1)
    monkeypatch.setattr(exporter, "CONSTANT_BYTES", 0)
    with pytest.raises(ExportError, match="stored twice"):
        list(OpenVinoExporter().artifacts(Source.of(tiny()), Options(("fp32",))))


def test_without_openvino_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingDependencyError, match=r"litebert\[openvino\]"):
        list(OpenVinoExporter().artifacts(Source.of(tiny()), Options(("fp32",))))
