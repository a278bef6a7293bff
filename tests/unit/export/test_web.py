"""The page with a model: what is written, and what is refused before anything is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve_folders import make_folder
from typer.testing import CliRunner

from litebert.cli import app
from litebert.errors import CheckpointError, ExportError, SettingsError
from litebert.export.web.graph import web_graph
from litebert.export.web.manifest import model_name
from litebert.export.web.site import PAGE, write_site
from litebert.export.web.tables import flat_ranges, hangul, map_table, mark_table
from litebert.runtime.onnx_file import OnnxFile, read_onnx
from litebert.tasks.exit_file import EXIT_FILE, ExitCurve, ExitPoint

pytest.importorskip("onnx")
RUNTIME = PAGE / "local" / "onnxruntime"


@pytest.fixture(scope="module")
def export(browser_runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert browser_runtime == RUNTIME
    return make_folder("classify", tmp_path_factory.mktemp("web"), precision="int8")


def copied(folder: Path, out: Path) -> Path:
    for path in folder.rglob("*"):
        if path.is_file():
            target = out / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return out


def test_everything_that_the_page_needs_is_there(export: Path, tmp_path: Path) -> None:
    site = write_site(export, tmp_path / "site", name="reviews")
    out = tmp_path / "site"
    manifest = json.loads((out / "model" / "manifest.json").read_text("utf-8"))
    assert len(manifest["files"]) == 3
    for name, known in manifest["files"].items():
        data = (out / "model" / name).read_bytes()
        assert known == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    index = (out / "index.html").read_text("utf-8")
    assert '<meta name="litebert-mode" content="static">' in index
    for word in ("Content-Security-Policy", "connect-src 'self'", "'wasm-unsafe-eval'"):
        assert word in index
    assert (out / "local" / "onnxruntime" / "LICENSE").is_file()
    theirs = {path.relative_to(PAGE) for path in PAGE.rglob("*") if path.is_file()}
    ours = {path.relative_to(out) for path in out.rglob("*") if path.is_file()}
    added = {Path("model") / name for name in ("manifest.json", "graph.onnx", "tokenizer.json")}
    assert ours == theirs | added
    assert site.files.keys() == {path.as_posix() for path in ours}
    assert manifest["info"]["model_id"] == "reviews" and site.precision == "int8"
    assert manifest["info"]["labels"] == ["bad", "good", "so-so"]
    assert manifest["info"]["routes"] == list(site.routes)
    assert not [path for path in tmp_path.iterdir() if path.name != "site"]


def test_the_graph_has_no_defaults_left(export: Path) -> None:
    import onnxruntime

    path = export / "onnx" / "litebert.onnx"
    before = read_onnx(path)
    after = web_graph(before, path)
    session: Any = onnxruntime.InferenceSession(after.data, providers=["CPUExecutionProvider"])
    assert session.get_overridable_initializers() == []
    names = {item.name for item in session.get_inputs()}
    assert {"depth", "start_depth", "hidden_in", "input_ids", "sequence_ids"} <= names
    assert after.metadata == before.metadata
    assert 0 < len(before.data) - len(after.data) < 1000


def test_a_graph_that_gives_something_else_is_refused(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litebert.export.web import graph

    path = export / "onnx" / "litebert.onnx"
    session = graph._session

    class Other:
        def __init__(self, file: OnnxFile) -> None:
            self._session = session(file)
            self._shift = float(not self._session.get_overridable_initializers())

        def run(self, names: Any, given: Any) -> Any:
            return [np.asarray(value) + self._shift for value in self._session.run(names, given)]

        def __getattr__(self, name: str) -> Any:
            return getattr(self._session, name)

    monkeypatch.setattr(graph, "_session", Other)
    with pytest.raises(ExportError, match="gives something else"):
        web_graph(read_onnx(path), path)


def test_places_that_are_taken_are_left_alone(export: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").write_text("mine")
    (tmp_path / "file").write_text("x")
    for out, words in ((full, "holds other files"), (tmp_path / "file", "is no folder"),
                       (export, "is the model folder"), (export.parent, "or around it"),
                       (tmp_path / "nul\0", "cannot be a folder")):  # fmt: skip
        with pytest.raises(SettingsError, match=words):
            write_site(export, out, overwrite=True)
    site = tmp_path / "site"
    write_site(export, site)
    with pytest.raises(SettingsError, match="--overwrite replaces it"):
        write_site(export, site)
    (site / "old.txt").write_text("x")
    write_site(export, site, overwrite=True)
    assert not (site / "old.txt").exists()


@pytest.mark.parametrize("fault", ["digest", "graph", "task", "vocabulary", "precision"])
def test_faults_of_the_folder_leave_nothing(fault: str, export: Path, tmp_path: Path) -> None:
    folder = copied(export, tmp_path / "in" / "model")
    graph = folder / "onnx" / "litebert.onnx"
    if fault == "digest":
        graph.write_bytes(graph.read_bytes()[:-1] + b"x")
    elif fault == "graph":
        graph.unlink()
    elif fault == "task":
        (folder / "task.json").write_text("{")
    elif fault == "vocabulary":
        for path in (*folder.glob("*.model"), *folder.glob("tokenizer*")):
            path.unlink()
    out = tmp_path / "out" / "site"
    with pytest.raises((CheckpointError, SettingsError)):
        write_site(folder, out, precision="fp16" if fault == "precision" else "auto")
    assert not out.parent.exists() or not list(out.parent.iterdir())


def test_tasks_that_the_page_cannot_ask_are_refused(export: Path, tmp_path: Path) -> None:
    from tests.serve_folders import task_of

    from litebert.export.web.manifest import WebModel
    from litebert.runtime.exported import ExportedFolder
    from litebert.tasks.coqa import CoqaTask

    folder = ExportedFolder.open(export)
    for head, task, words in (("span_joint", CoqaTask(), "whole dialogue"), ("span", None, "dialogue"),
                              ("sentence_order", None, "answers nothing")):  # fmt: skip
        notes = {
            "head": head,
            "depth": 1,
            "precision": "int8",
            "max_positions": None,
            "has_stages": True,
        }
        model = WebModel(folder, task, notes, 8, None, "sentencepiece")  # type: ignore[arg-type]
        with pytest.raises(ExportError, match=words):
            model.require_page()
    assert model.max_positions == 64
    task = task_of("pair")
    notes = {
        "head": "sequence",
        "depth": 1,
        "precision": "int8",
        "max_positions": 8,
        "has_stages": True,
    }
    found = WebModel(folder, task, notes, 8, None, "sentencepiece").routes()  # type: ignore[arg-type]
    assert {"/predict", "/rerank"} <= set(found)


@pytest.mark.parametrize("fault", ["index", "mode", "policy", "runtime"])
def test_a_page_that_is_not_whole_is_refused(fault: str, export: Path, tmp_path: Path) -> None:
    page = tmp_path / "page"
    (page / "local" / "onnxruntime").mkdir(parents=True)
    lines = ['<meta http-equiv="Content-Security-Policy" content="default-src \'self\'">',
             '<meta name="litebert-mode" content="server">']  # fmt: skip
    if fault != "index":
        kept = lines[1:] if fault == "policy" else lines[:1] if fault == "mode" else lines
        (page / "index.html").write_text("\n".join(kept))
    if fault != "runtime":
        (page / "local" / "onnxruntime" / "a.wasm").write_bytes(b"x")
    message = "fetch it with npm" if fault == "runtime" else "not whole"
    with pytest.raises(ExportError, match=message):
        write_site(export, tmp_path / "out", page=page)


def test_what_exits_found_goes_along(export: Path, tmp_path: Path) -> None:
    shallow, full = ExitPoint("", 1, 0.75, 1.0, 900.0), ExitPoint("", 2, 0.875, 2.0, 500.0)
    chosen = ExitPoint("confidence=0.9", 2, 0.87, 1.2, 800.0)
    curve = ExitCurve("accuracy", 0.005, "held-out", 80, 1, full, chosen, 0.0, (full, shallow))
    folder = copied(export, tmp_path / "model")
    (folder / EXIT_FILE).write_text(curve.to_json())
    write_site(folder, tmp_path / "site")
    manifest = json.loads((tmp_path / "site" / "model" / "manifest.json").read_text("utf-8"))
    assert manifest["exits"] == {"rule": "confidence=0.9", "depth": 2}
    assert [point["depth"] for point in manifest["info"]["curve"]["points"]] == [1, 2]
    assert manifest["info"]["exits"] is True
    (folder / EXIT_FILE).write_text("{}")
    with pytest.raises(CheckpointError):
        write_site(folder, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_names_of_models_are_plain(tmp_path: Path) -> None:
    assert model_name(Path("runs/my model (1)")) == "my-model-1"
    assert model_name(Path("/日本")) == "model"


def test_the_command(export: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = tmp_path / "site"
    done = run(app, ["export", "web", str(export), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["name"] == "classify"
    done = run(app, ["export", "web", str(export), "--out", str(out)])
    assert done.exit_code == 2 and "--overwrite" in done.stderr
    done = run(app, ["export", "web", str(export), "--out", str(out), "--overwrite", "--name", "x"])
    assert done.exit_code == 0 and "http.server" in done.stdout
    for extra, words in (
        (["--precision", "int8,fp32"], "runs one graph"),
        (["--precision", "fp16"], "no graph"),
    ):
        done = run(app, ["export", "web", str(export), "--out", str(tmp_path / "b"), *extra])
        assert done.exit_code == 2 and words in done.stderr
    done = run(app, ["export", "onnx", str(export), "--out", str(tmp_path / "b"), "--name", "x"])
    assert done.exit_code == 2 and "--name is of the page" in done.stderr
    done = run(app, ["export", "web", str(tmp_path / "none"), "--out", str(tmp_path / "b")])
    assert done.exit_code == 66, done.stderr
    assert not (tmp_path / "b").exists()


def test_a_model_folder_is_exported_first(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litebert.recipes import export_cache
    from litebert.recipes.export_web import export_web

    model = export.parent / "classify-model"
    asked: list[Path] = []
    monkeypatch.setattr(
        export_cache, "cached_export", lambda folder, _: asked.append(folder) or export
    )
    site = export_web(model, tmp_path / "site")
    assert asked == [model] and site.name == "classify-model"


def test_a_model_folder_needs_the_extra(
    export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from litebert.errors import MissingDependencyError
    from litebert.recipes import export_cache
    from litebert.recipes.export_web import export_web

    def missing(*_: Any) -> Path:
        raise ModuleNotFoundError("no torch", name="torch")

    monkeypatch.setattr(export_cache, "cached_export", missing)
    with pytest.raises(MissingDependencyError, match=r"litebert\[export\]"):
        export_web(export.parent / "classify-model", tmp_path / "site")


def test_tables_of_characters() -> None:
    assert flat_ranges([1, 2, 3, 7, 9, 10]) == [1, 3, 7, 7, 9, 10]
    assert hangul(0xAC00) == "\u1100\u1161" and hangul(0xD7A3) == "\u1112\u1175\u11c2"
    table = map_table([(65, "a"), (66, ""), (67, " C "), (68, "D"), (0xAC00, "x")])
    assert table == {"removed": [66, 66], "spaced": [67, 67], "hangul": False,
                     "map": {"A": "a", "\uac00": "x"}}  # fmt: skip
    blocks = map_table((code, hangul(code)) for code in range(0xAC00, 0xD7A4))
    assert blocks["hangul"] and not blocks["map"]
    marks = mark_table([(47, "s"), *((code, "d") for code in range(48, 58)), (58, "e")], "s")
    assert marks == {"ranges": [48, 57, 58, 58], "letters": "de", "usual": "s"}


def test_what_is_vendored_is_what_was_published(browser_runtime: Path) -> None:
    assert browser_runtime == RUNTIME
    listed = json.loads((RUNTIME / "VENDORED.json").read_text("utf-8"))
    assert (
        listed["license"] == "MIT" and listed["version"] and listed["package"] == "onnxruntime-web"
    )
    found = {path.name for path in RUNTIME.iterdir()} - {"VENDORED.json"}
    assert found == listed["files"].keys()
    for name, known in listed["files"].items():
        data = (RUNTIME / name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (known["bytes"], known["sha256"]), (
            name
        )
