"""Real training processes, killed, stopped and doubled by real signals."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from litebert.checkpoint.state import StateStore

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("train_script.py")
TWO_THREADS_ATOL = 1e-6
"""Sums of two threads may be ordered differently by another split of work."""
PATIENCE_SECONDS = 90


class Trainers:
    """Starts training processes; see `train_script.py`."""

    def __init__(self, logs: Path) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "2"}
        self.logs, self.numbers = logs, count()
        self.codes: dict[int, int] = {}
        self.server = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        assert self.answer() == "ready"

    def answer(self) -> str:
        assert self.server.stdout is not None
        return self.server.stdout.readline().strip()

    def start(self, folder: Path, *options: str) -> Training:
        log = self.logs / f"{next(self.numbers)}.log"
        assert self.server.stdin is not None
        self.server.stdin.write(" ".join((str(log), str(folder), *options)) + "\n")
        self.server.stdin.flush()
        while True:
            word, pid, *code = self.answer().split()
            if word == "pid":
                return Training(self, int(pid), log)
            self.codes[int(pid)] = int(code[0])


@dataclass
class Training:
    """One training process."""

    trainers: Trainers
    pid: int
    log: Path

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def wait_for(self, word: str) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while word not in self.lines():
            assert time.monotonic() < end and self.pid not in self.trainers.codes, self.lines()
            time.sleep(0.005)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        while self.pid not in self.trainers.codes:
            _, pid, code = self.trainers.answer().split()
            self.trainers.codes[int(pid)] = int(code)
        return self.trainers.codes[self.pid]

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL

    def result(self) -> str:
        assert self.wait() == 0, self.lines()
        return self.lines()[-1]


@pytest.fixture(scope="module")
def trainers(tmp_path_factory: pytest.TempPathFactory) -> Generator[Trainers]:
    trainers = Trainers(tmp_path_factory.mktemp("logs"))
    yield trainers
    trainers.server.communicate()


def metrics(folder: Path) -> list[dict[str, Any]]:
    parsed = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in parsed:
        del line["timing"]
    return parsed


Whole = tuple[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def whole(trainers: Trainers, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The uninterrupted run: its last line (status and hash of the weights) and its metrics."""
    folder = tmp_path_factory.mktemp("whole")
    return trainers.start(folder).result(), metrics(folder)


def check_end(trainers: Trainers, folder: Path, whole: Whole) -> None:
    """Resume to the end: everything is as in the uninterrupted run, bit for bit."""
    assert trainers.start(folder).result() == whole[0]
    assert metrics(folder) == whole[1]


def test_equal_seeds_give_equal_metrics(trainers: Trainers, tmp_path: Path, whole: Whole) -> None:
    check_end(trainers, tmp_path, whole)


def test_kill_at_random_times(trainers: Trainers, tmp_path: Path, whole: Whole) -> None:
    """Killed again and again, wherever it is."""
    rng = random.Random(8)
    for kill in range(6):
        process = trainers.start(tmp_path, "--pause", "0.01")
        process.wait_for(str(5 * kill + 4))
        time.sleep(rng.random() * 0.1)
        process.kill()
    check_end(trainers, tmp_path, whole)


def test_kill_inside_file_system_operations(
    trainers: Trainers, tmp_path: Path, whole: Whole
) -> None:
    """Here in the middle of whole runs; the unit tests do it at every operation of a save."""
    resumed_from: set[int] = set()
    for n in (2, 50, 90, 110, 130, 160, 190, 230):
        process = trainers.start(tmp_path, "--kill-at", str(n))
        assert process.wait() == -signal.SIGKILL
        saved = StateStore(tmp_path / "checkpoints").load_latest()
        if saved is not None:
            resumed_from.add(saved.step)
    assert len(resumed_from) > 3
    check_end(trainers, tmp_path, whole)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_signal_saves_and_exits_by_convention(
    trainers: Trainers, tmp_path: Path, whole: Whole, number: int, code: int
) -> None:
    process = trainers.start(tmp_path, "--pause", "0.05")
    process.wait_for("9")
    sent = time.monotonic()
    process.signal(number)
    assert process.wait() == code
    assert time.monotonic() - sent < 10
    *_, last_step, status = process.lines()
    assert status.startswith("interrupted")
    assert StateStore(tmp_path / "checkpoints").steps()[-1] == int(last_step)
    check_end(trainers, tmp_path, whole)


def test_signal_in_an_evaluation(trainers: Trainers, tmp_path: Path, whole: Whole) -> None:
    process = trainers.start(tmp_path, "--slow-eval", "60")
    process.wait_for("evaluating")
    process.signal(signal.SIGTERM)
    assert process.wait() == 143
    assert StateStore(tmp_path / "checkpoints").steps()[-1] == 6
    check_end(trainers, tmp_path, whole)


def test_second_signal_ends_at_once_and_the_run_still_resumes(
    trainers: Trainers, tmp_path: Path, whole: Whole
) -> None:
    process = trainers.start(tmp_path, "--pause", "60")
    process.wait_for("1")
    process.signal(signal.SIGTERM)  # the step "lasts" a minute
    time.sleep(0.3)
    process.signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    check_end(trainers, tmp_path, whole)


def test_the_second_process_on_a_run_is_refused(trainers: Trainers, tmp_path: Path) -> None:
    first = trainers.start(tmp_path, "--pause", "60")
    first.wait_for("1")
    second = trainers.start(tmp_path)
    assert second.wait() == 65
    assert re.search(rf"in use by process {first.pid} on \S+", second.lines()[-1])
    first.kill()


def test_corrupt_newest_state_falls_back(trainers: Trainers, tmp_path: Path, whole: Whole) -> None:
    process = trainers.start(tmp_path, "--pause", "0.02")
    process.wait_for("15")
    process.kill()
    store = StateStore(tmp_path / "checkpoints")
    newest = store.folder / f"step-{store.steps()[-1]:08d}" / "tensors.safetensors"
    raw = bytearray(newest.read_bytes())
    raw[len(raw) // 2] ^= 16
    newest.write_bytes(raw)
    process = trainers.start(tmp_path)
    assert process.result() == whole[0]
    assert sum("did not verify" in line for line in process.lines()) == 1
    assert metrics(tmp_path) == whole[1]
    assert (store.folder / ".quarantine" / newest.parent.name).is_dir()


def test_two_threads_resume_within_rounding(trainers: Trainers, tmp_path: Path) -> None:
    options = ("--threads", "2", "--steps", "12")
    trainers.start(tmp_path / "a", *options).result()
    process = trainers.start(tmp_path / "b", *options, "--pause", "0.05")
    process.wait_for("7")
    process.kill()
    trainers.start(tmp_path / "b", *options).result()
    a, b = (
        load_file(tmp_path / name / "checkpoints" / "step-00000012" / "tensors.safetensors")
        for name in "ab"
    )
    for name in a:
        if name.startswith("model/"):
            assert abs(a[name] - b[name]).max() <= TWO_THREADS_ATOL


def test_a_disk_that_is_full_for_a_while_stops_nothing(
    trainers: Trainers, tmp_path: Path, whole: Whole
) -> None:
    """The system's limit on the size of files stands in for a full disk."""
    process = trainers.start(tmp_path, "--no-space", "10", "30")
    assert process.result() == whole[0]
    warnings = [line for line in process.lines() if "was not saved" in line]
    assert len(warnings) == 5, "steps 12, 16, 20, 24, 28"
    assert StateStore(tmp_path / "checkpoints").steps()[-2:] == [36, 40]


def test_a_folder_that_cannot_be_written_is_refused(trainers: Trainers, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    process = trainers.start(tmp_path / "run")
    assert process.wait() == 74
    assert "cannot write here" in process.lines()[-1]
