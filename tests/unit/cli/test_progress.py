"""What a person sees of a run, with and without a terminal."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from litebert.cli import progress as module
from litebert.cli.progress import Progress


@dataclass
class Started:
    step: int = 0
    total_steps: int = 100
    device: str = "cpu"
    threads: int = 2
    precision: str = "fp32"


@dataclass
class Stepped:
    step: int = 10
    total_steps: int = 100
    loss: float = 0.5
    tokens_per_second: float = 1234.0
    learning_rate: float = 1e-3
    rss_bytes: int = 5_000_000
    eta_seconds: float = 3723.0


@dataclass
class Evaluated:
    step: int = 10
    epoch: float = 1.0
    metrics: dict[str, float] = field(default_factory=lambda: {"accuracy": 0.75})
    is_best: bool = True


@dataclass
class Warned:
    message: str = "odd \x1b[2J"


@dataclass
class Unheard:
    """An event that nobody shows."""


EVENTS = (Started(), Stepped(), Evaluated(), Warned(), Unheard())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_without_a_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0.0)
    with Progress("accuracy", tmp_path / "log.txt") as progress:
        for event in EVENTS:
            progress(event)  # type: ignore[arg-type]
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines == [
        "training  on cpu, 2 threads, fp32",
        "step 10/100  loss 0.5000  1,234 tokens/s  lr 1.00e-03  5 MB  1:02:03 left",
        "step 10  epoch 1.0  accuracy 0.7500  best so far",
        "warning   odd \\x1b[2J",
    ]
    kept = (tmp_path / "log.txt").read_text("utf-8").splitlines()
    assert [re.sub(r"^\S+ ", "", line) for line in kept] == lines


def test_one_line_in_ten_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    with Progress("accuracy") as progress:
        for clock[0] in (1.0, 9.9, 10.1, 10.2, 19.0, 20.2, 1000.0):
            progress(Stepped())  # type: ignore[arg-type]
    assert len(capsys.readouterr().err.splitlines()) == 3


@pytest.mark.parametrize(("term", "is_live"), [("xterm", True), ("dumb", False), ("", False)])
def test_a_bar_on_a_terminal_that_can(
    monkeypatch: pytest.MonkeyPatch, term: str, is_live: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", "1")
    with Progress("accuracy") as progress:
        for event in EVENTS:
            progress(event)  # type: ignore[arg-type]
    shown = terminal.getvalue()
    assert ("\x1b[" in shown) == is_live
    assert "accuracy 0.7500" in shown
    assert "\x1b[2J" not in shown
    assert ("━" in shown) == is_live


def test_a_log_that_cannot_be_written_stops_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with Progress("accuracy", tmp_path) as progress:
        progress(Evaluated())  # type: ignore[arg-type]
        progress(Evaluated())  # type: ignore[arg-type]
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith("step")]) == 2
    assert len([line for line in lines if "no longer written" in line]) == 1
