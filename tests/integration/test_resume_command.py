"""Stop a real training by a signal, go on with the printed command, and end with the same weights."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from .conftest import SMALL, Litebert, environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
]

LONG = (*SMALL, "--epochs", "24", "--no-baselines", "--set", "train.patience=1000")
WAIT_SECONDS = 120.0


@pytest.fixture(scope="module")
def uninterrupted(
    litebert: Litebert, table: Path, tmp_path_factory: pytest.TempPathFactory
) -> bytes:
    """The weights of a run that nobody stopped."""
    cwd = tmp_path_factory.mktemp("whole")
    done = litebert("train", table, "--out", "run", *LONG, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return (cwd / "run/model-best/model.safetensors").read_bytes()


def start(table: Path, cwd: Path) -> tuple[subprocess.Popen[bytes], list[str], threading.Thread]:
    """A training process, with the lines that it has said so far."""
    process = subprocess.Popen(
        [sys.executable, "-m", "litebert", "train", str(table), "--out", "a run", *LONG],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    lines: list[str] = []
    stderr = process.stderr
    assert stderr is not None
    reader = threading.Thread(
        target=lambda: lines.extend(line.decode("utf-8") for line in iter(stderr.readline, b""))
    )
    reader.start()
    return process, lines, reader


@pytest.mark.parametrize(
    ("number", "after_evaluations"),
    [(signal.SIGTERM, 3), (signal.SIGINT, 7)],
    ids=["SIGTERM", "SIGINT"],
)
def test_a_stopped_run_goes_on_to_the_same_weights(
    litebert: Litebert,
    table: Path,
    tmp_path: Path,
    uninterrupted: bytes,
    number: signal.Signals,
    after_evaluations: int,
) -> None:
    process, lines, reader = start(table, tmp_path)
    end = time.monotonic() + WAIT_SECONDS
    while sum(line.startswith("step ") for line in list(lines)) < after_evaluations:
        assert process.poll() is None, "".join(lines)
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(number)
    code = process.wait(timeout=60)
    reader.join(timeout=60)
    assert process.stderr is not None
    process.stderr.close()
    text = "".join(lines)
    assert code == 128 + number, text
    assert "Traceback" not in text
    found = re.search(r"continue with: litebert (.+)", text)
    assert found is not None
    assert not (tmp_path / "a run" / "report.html").exists()
    unfinished = litebert("predict", "a run", "text", cwd=tmp_path)
    assert unfinished.returncode == 65
    assert b"--resume" in unfinished.stderr
    done = litebert(*shlex.split(found.group(1)), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"from step" in done.stderr
    assert (tmp_path / "a run/model-best/model.safetensors").read_bytes() == uninterrupted
    assert (tmp_path / "a run/report.html").exists()


def test_changed_data_are_not_trained_on(litebert: Litebert, table: Path, tmp_path: Path) -> None:
    copy = tmp_path / "table.csv"
    copy.write_bytes(table.read_bytes())
    done = litebert("train", copy, "--out", "run", *SMALL, "--no-baselines", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    copy.write_bytes(table.read_bytes().replace(b"kettle", b"teapot"))
    done = litebert("train", "--resume", "run", cwd=tmp_path)
    assert done.returncode in (2, 65), done.stderr
    assert b"Traceback" not in done.stderr
