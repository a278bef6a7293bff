"""The commands and the Python block of the page on the packaged encoder run, with a stand-in for it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.named_encoders import make_named_encoder, named_encoders
from typer.testing import CliRunner

from litebert.cli import app

pytest.importorskip("onnx")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "packaged-encoder.md").read_text(
    "utf-8"
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
QUICK = " --epochs 1 --seeds 1 --no-baselines --set train.threads=1 --set train.guard.enabled=false"
SMALL = (
    " --set model.vocab_size=100 --set model.config.hidden_size=16"
    " --set model.config.num_attention_heads=2 --set model.config.num_hidden_layers=1"
)


def test_everything_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_named_encoder(tmp_path / "encoders")
    rows = [
        f"the {thing} {what},{label}"
        for thing in ("kettle", "lamp", "radio", "chair", "book")
        for what, label in (
            ("is fine", "good"),
            ("is broken", "bad"),
            ("sails", "good"),
            ("is late", "bad"),
        )
    ]
    for name in ("reviews.csv", "texts.csv"):
        (tmp_path / name).write_text("text,label\n" + "\n".join(rows * 2) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    ran = 0
    with named_encoders(tmp_path / "encoders", monkeypatch):
        for language, text in FENCE.findall(PAGE):
            if language == "python":
                exec(compile(text, "page", "exec"), {})  # noqa: S102 - our own page
                continue
            for line in text.splitlines():
                more = QUICK if "train" in line else ""
                more += SMALL if "--from scratch" in line else ""
                done = CliRunner().invoke(app, shlex.split(line + more)[1:])
                assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
                ran += 1
                if "train" in line:
                    said = done.stderr
                    assert ("comes with litebert" in said) == ("--from scratch" not in line)
    assert ran == 7
    assert (tmp_path / "vectors.npy").exists()
    assert (tmp_path / "twin" / "config.json").exists()
