"""The commands of the page on the browser run, and what they leave is what the page names."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.serve_folders import make_folder
from typer.testing import CliRunner

from litebert.cli import app

pytest.importorskip("onnx")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "run-in-the-browser.md").read_text("utf-8")


@pytest.mark.usefixtures("browser_runtime")
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_folder("classify", tmp_path / "made")
    shutil.copytree(
        tmp_path / "made" / "classify-model", tmp_path / "runs" / "reviews-1" / "model-best"
    )
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"```text\n(.*?)```", PAGE, re.S)[0].splitlines()
    assert lines[2].startswith("python -m http.server --directory reviews-web")
    for line in lines[:2]:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
    left = {path.relative_to("reviews-web").as_posix() for path in Path("reviews-web").rglob("*")}
    for name in re.findall(r"^\| `([^|]*)` \|", PAGE, re.M):
        for part in re.split(r"`, `", name):
            ending = part.rpartition("*")[2] if "*" in part else None
            found = (
                [path for path in left if path.endswith(ending)]
                if ending
                else part.rstrip("/") in left
            )
            assert found, part
    assert "python -m http.server --directory reviews-web" in done.output
