"""Exports that are made when a model folder is to be served, and kept for the next time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

from litebert.recipes.export import export_model
from litebert.recipes.run_folder import model_folder
from litebert.runtime.exported import is_exported

__all__ = ["cached_export"]


def cached_export(
    folder: Path, on_start: Callable[[Path], None], *, cache: Path | None = None
) -> Path:
    """Return the export of a model folder or run folder; made now if it is not there yet.

    It is known by path, size and time of the weights: a model that is trained again is exported again.

    Args:
        folder: with a model.
        on_start: told where the export is going to be, before the minutes that it takes.
        cache: where exports are kept; None: the cache folder of the user.

    Raises:
        CheckpointError: no model folder.
        MissingDependencyError: what exporting needs is not installed.
        ExportError: the export differs from the model.
    """
    model = model_folder(folder).resolve()
    marks = [str(model)]
    for path in sorted(model.glob("*.safetensors")) + sorted(model.glob("*.json")):
        status = path.stat()
        marks.append(f"{path.name} {status.st_size} {status.st_mtime_ns}")
    digest = hashlib.sha256("\n".join(marks).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    out = (cache or user_cache_path("litebert") / "exports") / digest
    if not is_exported(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        on_start(out)
        export_model("onnx", model, out, plain=False, overwrite=True)
    return out
