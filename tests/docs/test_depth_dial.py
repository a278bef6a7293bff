"""The commands of the page on the depth dial run, in the order they are shown, on a small table."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litebert.cli import app

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "turn-the-depth-dial.md"
SMALL = (
    " --yes --epochs 1 --seeds 1 --no-baselines --set model.vocab_size=120 --set train.threads=1"
    " --set train.guard.enabled=false --set model.config.num_hidden_layers=3"
    " --set model.config.hidden_size=32 --set model.config.num_attention_heads=2"
)
FAST = " --timed 8 --rounds 1 --threads 1"


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        f"the {thing} number {n} {what},{label}"
        for n in range(5)
        for thing in ("kettle", "lamp", "radio")
        for what, label in (("works well", "good"), ("came broken", "bad"))
    ]
    for name in ("reviews.csv", "held-out.csv", "new.csv"):
        (tmp_path / name).write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    fences = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    lines = [line for fence in fences for line in fence.splitlines()]
    assert len(lines) == 9
    for line in lines:
        added = {"litebert train": SMALL, "litebert exits": FAST}
        extra = next((text for start, text in added.items() if line.startswith(start)), "")
        done = CliRunner().invoke(app, shlex.split(line + extra)[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
    assert (tmp_path / "answers.jsonl").exists()
    assert (tmp_path / "answers-onnx.jsonl").exists()
