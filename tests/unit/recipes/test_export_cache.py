from __future__ import annotations

import os
from pathlib import Path

import pytest

from litebert.recipes.export_cache import cached_export
from litebert.runtime import Session

pytest.importorskip("onnx")


def test_a_model_is_exported_once_and_again_when_it_changes(
    model_dir: Path, tmp_path: Path
) -> None:
    started: list[Path] = []
    first = cached_export(model_dir, started.append, cache=tmp_path)
    assert Session(first, threads=1).predict("the lamp")
    assert cached_export(model_dir, started.append, cache=tmp_path) == first
    assert started == [first]
    weights = model_dir / "model.safetensors"
    before = weights.stat()
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    try:
        assert cached_export(model_dir, started.append, cache=tmp_path) != first
    finally:
        os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
