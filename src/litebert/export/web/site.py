"""The folder for a web host: the files of the page, and the model beside them; written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litebert.checkpoint import fs
from litebert.errors import CheckpointError, ExportError
from litebert.export.place import checked_place
from litebert.export.web.graph import web_graph
from litebert.export.web.manifest import GRAPH_FILE, TOKENIZER_FILE, WebModel, model_name
from litebert.export.web.tokenizer import tokenizer_data
from litebert.files import check_file
from litebert.runtime.exported import ExportedFolder
from litebert.runtime.graph import Graph
from litebert.runtime.onnx_file import OnnxFile, read_onnx
from litebert.small_files import read_small
from litebert.tasks.base import TASK_FILE, load_task
from litebert.text.folder import read_pieces
from litebert.text.tokenizer import Tokenizer, check_vocabulary_fits

__all__ = ["PAGE", "Site", "checked_site", "write_site"]

PAGE: Final = Path(__file__).resolve().parents[2] / "serve" / "page"
"""The files of the page, which the server serves, too."""
MODEL: Final = "model"
MANIFEST: Final = f"{MODEL}/manifest.json"
_MODE: Final = '<meta name="litebert-mode" content="{}">'
_POLICY: Final = 'http-equiv="Content-Security-Policy"'
_RUNTIME: Final = "local/onnxruntime"
_MAX_PAGE_FILE: Final = 40_000_000
_TAGGING: Final = "token"


@dataclass(frozen=True, slots=True)
class Site:
    """What was written.

    Attributes:
        path: the folder.
        name: of the model.
        files: path in the folder -> bytes.
        precision: of the graph.
        routes: what the page answers.
    """

    path: Path
    name: str
    files: Mapping[str, int]
    precision: str
    routes: tuple[str, ...]

    @property
    def model_bytes(self) -> int:
        """Bytes of graph and tokenizer."""
        return sum(size for name, size in self.files.items() if name.startswith(f"{MODEL}/"))

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "target": "web",
            "name": self.name,
            "precision": self.precision,
            "routes": list(self.routes),
            "bytes": sum(self.files.values()),
            "model_bytes": self.model_bytes,
            "files": dict(self.files),
        }


def write_site(
    source: Path,
    out: Path,
    *,
    precision: str = "auto",
    name: str | None = None,
    overwrite: bool = False,
    page: Path = PAGE,
) -> Site:
    """Write the page and a model as a folder that any web host can serve.

    Args:
        source: folder that `litebert export onnx` made.
        out: where to; new or empty, or with `overwrite` an older one.
        precision: of the graph: int8, fp32; auto: int8 where it was exported.
        name: of the model; None: that of the folder.
        overwrite: replace an older one.
        page: files of the page.

    Raises:
        SettingsError: a place that cannot be used, or a precision that was not exported.
        CheckpointError: any fault of the export; the disk refused.
        ExportError: a task or tokenizer that the page does not know, or a page that is not whole.
    """
    place = checked_site(out, source, overwrite=overwrite)
    folder = ExportedFolder.open(source)
    chosen = folder.choose(precision)
    file = read_onnx(chosen.path, sha256=chosen.sha256)
    model = _model(folder, file, chosen.path)
    files = _page_files(page)
    pieces = read_pieces(folder.path)
    graph = web_graph(file, chosen.path)
    words = tokenizer_data(pieces, has_words=model.notes["head"] == _TAGGING)
    text = json.dumps(words, ensure_ascii=False, separators=(",", ":"))
    files[f"{MODEL}/{GRAPH_FILE}"] = graph.data
    files[f"{MODEL}/{TOKENIZER_FILE}"] = text.encode("utf-8")
    called = name or model_name(source)
    return _write(place, files, model, called, out)


def _model(folder: ExportedFolder, file: OnnxFile, path: Path) -> WebModel:
    """Load what was exported, so that nothing is written that cannot be used."""
    graph = Graph(file, threads=1, path=path)
    tokenizer = Tokenizer.from_pretrained(folder.path)
    check_vocabulary_fits(tokenizer, folder.size("vocab_size"))
    has_task = check_file(folder.path / TASK_FILE) is not None
    notes = {
        "head": graph.head,
        "depth": graph.depths,
        "precision": graph.precision,
        "max_positions": graph.max_positions,
        "has_stages": graph.has_stages,
    }
    task = load_task(folder.path) if has_task else None
    model = WebModel(folder, task, notes, graph.hidden_size, tokenizer, tokenizer.kind)
    model.require_page()
    return model


def _page_files(page: Path) -> dict[str, bytes]:
    """The files of the page, told that the model is beside them.

    Raises:
        ExportError: something is missing.
    """
    paths = sorted(path for path in page.rglob("*") if path.is_file())
    files = {
        path.relative_to(page).as_posix(): read_small(path, _MAX_PAGE_FILE)
        for path in paths
        if not any(part.startswith((".", "__")) for part in path.relative_to(page).parts)
    }
    index = files.get("index.html", b"").decode("utf-8")
    if index.count(_MODE.format("server")) != 1 or _POLICY not in index:
        raise ExportError("the files of the page are not whole; install litebert again", path=page)
    if not _runtime(files):
        raise ExportError(
            "the runtime of the browser is not there; wheels hold it, in a checkout fetch it with npm: "
            "python tools/vendor_onnxruntime.py",
            path=page / _RUNTIME,
        )
    index = index.replace(_MODE.format("server"), _MODE.format("static"))
    files["index.html"] = index.encode("utf-8")
    return files


def _runtime(files: Mapping[str, bytes]) -> str | None:
    """The file of the runtime that computes."""
    found = [name for name in files if name.startswith(_RUNTIME) and name.endswith(".wasm")]
    return found[0] if len(found) == 1 else None


def _write(place: Path, files: dict[str, bytes], model: WebModel, name: str, told: Path) -> Site:
    fs.make_folder(place.parent)
    temporary = place.with_name(f".{place.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        fs.make_folder(temporary)
        listed: dict[str, dict[str, Any]] = {}
        for path, data in files.items():
            fs.make_folder((temporary / path).parent)
            stamp = fs.write_file(temporary / path, data)
            if path.startswith(f"{MODEL}/"):
                listed[path.removeprefix(f"{MODEL}/")] = _entry(stamp)
            elif path == _runtime(files):
                listed[f"../{path}"] = _entry(stamp)
        manifest = json.dumps(model.manifest(name, listed), ensure_ascii=False, indent=1) + "\n"
        files[MANIFEST] = manifest.encode("utf-8")
        fs.write_file(temporary / MANIFEST, files[MANIFEST])
        for inner in sorted({(temporary / path).parent for path in files}):
            fs.fsync_folder(inner)
        fs.replace_folder_atomic(temporary, place)
    except BaseException:
        with contextlib.suppress(CheckpointError):
            fs.remove_tree(temporary)
        raise
    sizes = {path: len(data) for path, data in files.items()}
    return Site(told, name, sizes, model.notes["precision"], tuple(model.routes()))


def _entry(stamp: fs.FileStamp) -> dict[str, Any]:
    return {"bytes": stamp.size, "sha256": stamp.sha256}


def checked_site(out: Path, source: Path, *, overwrite: bool) -> Path:
    """Return where the page is written, resolved; see `checked_place`."""
    return checked_place(out, source, MANIFEST, "a page", overwrite=overwrite)
