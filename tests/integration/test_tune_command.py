"""`litebert tune` as a process: killed at any moment, the same command goes on and loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litebert.cli import app
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.settings import load_settings

from .conftest import environment

pytest.importorskip("optuna")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
]

OPTIONS = (
    "--trials", "3", "--epochs", "3", "--yes", "--no-baselines", "--no-prune", "--threads", "1",
    "--model", "tiny", "--set", "model.vocab_size=100", "--set", "train.precision=fp32",
    "--set", "model.config.hidden_size=32", "--set", "model.config.num_attention_heads=2",
    "--set", "model.config.intermediate_size=64", "--set", "train.guard.enabled=false",
    "--set", "tune.space.learning_rate={low = 1e-4, high = 1e-2}", "--set", "tune.space.depth=[1, 2]",
)  # fmt: skip
WAIT_SECONDS = 200.0


def start(table: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "litebert", "tune", str(table), "--out", str(out), *OPTIONS],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment(),
    )


def records(out: Path) -> list[tuple[str, float, dict[str, object]]]:
    table = json.loads((out / "tune.json").read_text("utf-8"))
    return [(t["state"], t["score"], t["values"]) for t in table["trials"]]


def test_killed_twice_it_ends_like_a_search_in_peace(table: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "my search é"
    quiet = start(table, whole)
    for at in (1, 2):  # in the second trial, then again
        process = start(table, out)
        assert process.stderr is not None
        begun, end = False, time.monotonic() + WAIT_SECONDS
        for line in process.stderr:
            begun = begun or line.startswith(f"trial {at} ") or " (2 of 3" in line
            if (begun and line.startswith("step ")) or time.monotonic() > end:
                break
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        ended = len(records(out)) if (out / "tune.json").exists() else 0
        assert ended == 1  # the first trial is not lost
    last = start(table, out)
    printed, said = last.communicate(timeout=WAIT_SECONDS)
    assert last.returncode == 0, said
    assert "from where it stopped" in said and "Traceback" not in said
    assert "best.toml" in printed and "best      trial" in printed
    assert quiet.wait(WAIT_SECONDS) == 0
    quiet.communicate()
    assert records(out) == records(whole)
    best = load_settings(FinetuneSettings, out / "best.toml")
    assert 1e-4 <= best.train.learning_rate <= 1e-2


def test_what_would_be_done(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CliRunner()
    out = tmp_path / "s"
    arguments = ["tune", str(table), "--out", str(out), *OPTIONS]
    result = runner.invoke(app, [*arguments, "--dry-run"])
    assert result.exit_code == 0, result.stderr
    assert "vary      learning_rate: 0.0001 to 0.01 by ratio" in result.stdout
    assert "trials    3, the first 3 random" in result.stdout and "that 3 times" in result.stdout
    assert not out.exists()
    result = runner.invoke(app, ["tune", "--out", str(out)])
    assert result.exit_code == 2 and "nothing to train on" in result.stderr
    result = runner.invoke(app, [*arguments, "--set", "tune.space.dept=[1, 2]"])
    assert result.exit_code == 2 and "did you mean 'depth'" in result.stderr
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2 and 'pip install "litebert[tune]"' in result.stderr
