"""Commands on an export in a process where torch cannot be imported."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run

pytestmark = pytest.mark.slow

WITHOUT_TORCH = """
import json, sys
class Ban:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "onnx", "jaxtyping", "sklearn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Ban())
from litebert.cli import main
for line in json.load(open(sys.argv[1])):
    print("COMMAND", line[0], flush=True)
    sys.argv = ["litebert", *line]
    try:
        main()
    except SystemExit as ended:
        print("CODE", ended.code, flush=True)
"""


@pytest.fixture(scope="module")
def exported(finished: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained classifier, exported."""
    from litebert.export.onnx.packed import packed_model
    from litebert.export.onnx.source import load_source, make_precision
    from litebert.recipes.run_folder import model_folder

    folder = model_folder(finished.path)
    out = tmp_path_factory.mktemp("export") / "out"
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns("*.safetensors"))
    source = load_source(folder)
    data = packed_model(source.parts, make_precision("fp32", source)).SerializeToString()
    (out / "onnx").mkdir()
    (out / "onnx" / "litebert.onnx").write_bytes(data)
    entry = {"form": "packed", "precision": "fp32", "sha256": hashlib.sha256(data).hexdigest()}
    table = {"format_version": 1, "files": {"onnx/litebert.onnx": entry}}
    (out / "export.json").write_text(json.dumps(table))
    return out


def test_every_reading_command_works(exported: Path, finished: Run, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    labels = json.loads((exported / "task.json").read_text())["labels"]
    texts = ["the lamp is fine", "a broken chair", "late again", "what a lovely radio"]
    rows = [f"{text},{labels[i % len(labels)]}" for i, text in enumerate(texts)]
    table.write_text("text,label\n" + "\n".join(rows) + "\n")
    commands = [
        ["predict", str(exported), texts[0], "--format", "jsonl"],
        ["predict", str(exported), str(table), "--format", "jsonl", "--depth", "1"],
        ["evaluate", str(exported), str(table), "--json", "--text-column", "text", "--label-column", "label"],
        ["embed", str(exported), str(table)],
        ["search", str(exported), str(table), "lamp", "--top", "2", "--no-cache", "--json"],
        ["predict", str(finished.path), texts[0]],
    ]  # fmt: skip
    (tmp_path / "commands.json").write_text(json.dumps(commands))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "commands.json")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    parts = done.stdout.split("COMMAND ")[1:]
    assert [part.split()[0] for part in parts] == [command[0] for command in commands]
    codes = [part.rsplit("CODE ", 1)[1].strip() for part in parts]
    assert codes[:-1] == ["0"] * 5, done.stderr
    body = [part.split("\n", 1)[1].rsplit("CODE ", 1)[0] for part in parts]
    assert json.loads(body[0])["prediction"] in labels
    assert len(body[1].splitlines()) == len(texts)
    assert json.loads(body[2])["examples"] == len(texts)
    assert len(body[3].splitlines()) == len(texts)
    assert json.loads(body[4])["hits"][0]["rank"] == 1
    # A model folder itself needs torch, and the message says how to get it.
    assert codes[-1] == "2" and 'pip install "litebert[train]"' in done.stderr


def test_answers_are_those_of_the_folder(exported: Path, finished: Run) -> None:
    from litebert.recipes.loading import load
    from litebert.runtime import Session

    ours, theirs = load(exported), load(finished.path)
    assert isinstance(ours, Session)
    for a, b in zip(ours.predict(["fine", "late"]), theirs.predict(["fine", "late"]), strict=True):
        assert a.scores == pytest.approx(b.scores, abs=1e-5)
