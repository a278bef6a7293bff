"""The commands of the page on shrinking run, in the order they are shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litebert.cli import app

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "shrink-a-model.md"
TRAIN = (
    "train reviews.csv --out runs/reviews --epochs 1 --seeds 1 --no-baselines --set model.vocab_size=100"
    " --set model.config.hidden_size=32 --set model.config.num_attention_heads=4"
    " --set model.config.intermediate_size=300 --set train.threads=1"
)


def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"the {thing} {what},{label}" for thing in ("kettle", "lamp", "radio", "chair", "book")
            for what, label in (("works well", "good"), ("came broken", "bad"),
                                ("is a joy to use", "good"), ("stopped at once", "bad"))]  # fmt: skip
    for name in ("reviews.csv", "held-out.csv"):
        Path(name).write_text("text,label\n" + "\n".join(rows * 2) + "\n")
    Path("reviews.csv.txt").write_text("\n".join(rows))
    lines = [TRAIN]
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S):
        lines += [line.removeprefix("litebert ") for line in block.splitlines()]
    assert len(lines) == 11
    for line in lines:
        # A model of 40 examples may lose more than a point; refusing is tested elsewhere.
        line = line.replace("--max-drop 0.01", "--max-drop 1")
        if line.startswith("prune") and "--train" in line and "--epochs" not in line:
            line += " --epochs 1"
        result = CliRunner().invoke(app, shlex.split(line))
        assert result.exit_code == 0, f"{line}\n{result.output}"
