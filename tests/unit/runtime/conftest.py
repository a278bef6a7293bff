"""Exported folders for tests: a tiny model's packed graph beside its tokenizer and task."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

MakeExport = Callable[..., Path]


@pytest.fixture(scope="session")
def make_export(tmp_path_factory: pytest.TempPathFactory) -> MakeExport:
    """Return a function (model folder, precisions) -> exported folder."""

    def make(folder: Path, precisions: tuple[str, ...] = ("fp32",)) -> Path:
        from litebert.export.onnx.packed import packed_model
        from litebert.export.onnx.source import load_source, make_precision

        out = tmp_path_factory.mktemp("export") / "out"
        shutil.copytree(folder, out, ignore=shutil.ignore_patterns("*.safetensors"))
        (out / "onnx").mkdir()
        source = load_source(folder)
        files = {}
        for name in precisions:
            chosen = make_precision(name, source)
            data = packed_model(source.parts, chosen).SerializeToString()
            path = f"onnx/litebert{'_int8' if name == 'int8' else ''}.onnx"
            (out / path).write_bytes(data)
            files[path] = {
                "sha256": hashlib.sha256(data).hexdigest(),
                "precision": name,
                "form": "packed",
            }
        (out / "export.json").write_text(json.dumps({"format_version": 1, "files": files}))
        return out

    return make


@pytest.fixture(scope="session")
def export_dir(make_export: MakeExport, model_dir: Path) -> Path:
    """The classifier of three classes, exported."""
    return make_export(model_dir)
