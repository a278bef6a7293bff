"""Which back-ends can run a model here, and why others cannot."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litebert.files import check_file, read_json
from litebert.models import locate
from litebert.recipes.run_folder import model_folder
from litebert.runtime.exported import EXPORT_FILE, ExportedFolder, is_exported

__all__ = ["Candidate", "Missing", "find_candidates", "shape_of"]

MAX_CONFIG_BYTES: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """One back-end with what it loads.

    Attributes:
        name: as the table shows it.
        engine: key of `ENGINES`.
        path: what it loads.
        data: what `litebert evaluate` takes for the same numbers; None where it has no way to them.
        file_bytes: size of the weights or graph on disk.
    """

    name: str
    engine: str
    path: Path
    data: Path | None
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Missing:
    """A back-end that cannot be measured."""

    name: str
    reason: str


def find_candidates(source: Path) -> tuple[list[Candidate], list[Missing]]:
    """Return what can run a model folder, a run folder or an export.

    Raises:
        CheckpointError: no model, or an export that cannot be used.
    """
    source = locate(source)
    if is_exported(source):
        return _exported(source)
    return _folder(model_folder(source))


def _folder(folder: Path) -> tuple[list[Candidate], list[Missing]]:
    size = sum(check_file(path) or 0 for path in folder.glob("*.safetensors"))
    found: list[Candidate] = []
    missing: list[Missing] = []
    if _is_installed("torch"):
        found.append(Candidate("torch", "torch", folder, folder, size))
    else:
        missing.append(Missing("torch", 'not installed: pip install "litebert[train]"'))
    kind = read_json(folder / "config.json", max_bytes=MAX_CONFIG_BYTES).get("model_type")
    if not _is_installed("transformers"):
        missing.append(Missing("transformers", 'not installed: pip install "litebert[hf]"'))
    elif kind != "albert":
        missing.append(Missing("transformers", f"cannot compute a model of type {kind!r:.40}"))
    else:
        found.append(Candidate("transformers", "transformers", folder, None, size))
    missing.append(Missing("onnx", "give the folder that `litebert export onnx` made as well"))
    return found, missing


def _exported(source: Path) -> tuple[list[Candidate], list[Missing]]:
    export = ExportedFolder.open(source)
    found = [
        Candidate(
            f"litebert {graph.precision}",
            "litebert",
            graph.path,
            graph.path,
            check_file(graph.path) or 0,
        )
        for graph in export.graphs
    ]
    missing: list[Missing] = []
    plain = export.path / "onnx" / "model.onnx"
    if (size := check_file(plain)) and plain.name not in {g.path.name for g in export.graphs}:
        found.append(Candidate("onnxruntime, plain graph", "onnxruntime", plain, None, size))
        if _is_installed("openvino"):
            found.append(Candidate("openvino", "openvino", plain, None, size))
        else:
            missing.append(Missing("openvino", 'not installed: pip install "litebert[openvino]"'))
    else:
        missing.append(Missing("openvino", f"{plain} is not there; export it with --plain"))
    mobile = sorted(export.path.glob("**/*.pte"))
    if mobile and not _is_installed("executorch"):
        missing.append(Missing("executorch", 'not installed: pip install "litebert[mobile]"'))
    elif not mobile:
        missing.append(Missing("executorch", f"{EXPORT_FILE} names no .pte file"))
    else:
        found += [
            Candidate(f"executorch {_precision(path)}", "executorch", path, None, size)
            for path in mobile
            if (size := check_file(path))
        ]
    return found, missing


def _precision(path: Path) -> str:
    """Number format of a `.pte` of ours, by its name."""
    return path.stem.partition("_")[2] or "fp32"


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def shape_of(source: Path) -> dict[str, Any]:
    """Return the configuration of a model folder or export."""
    source = locate(source)
    folder = ExportedFolder.open(source).path if is_exported(source) else model_folder(source)
    return read_json(folder / "config.json", max_bytes=MAX_CONFIG_BYTES)
