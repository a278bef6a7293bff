"""Starts pretraining processes over tiny shards, and reads what they wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("pretrain_script.py")
PATIENCE_SECONDS = 600
"""Longest wait for anything; a quiet machine needs a hundredth."""
STEPS = 40

Metrics = list[dict[str, Any]]

PLAIN = """
[data]
shards = "{shards}"
max_length = 96
eval_fraction = 0.15
eval_examples = 12
[model.config]
embedding_size = 8
hidden_size = 16
num_hidden_layers = 2
num_attention_heads = 2
intermediate_size = 32
max_position_embeddings = 96
hidden_dropout_prob = 0.1
attention_probs_dropout_prob = 0.1
[train]
max_steps = 40
batch_size = 8
micro_batch_tokens = 300
learning_rate = 3e-3
eval_steps = 6
save_steps = 4
log_steps = 3
threads = 1
precision = "fp32"
device = "cpu"
"""
"""A run of two objectives that takes a second or two, and is repeatable bit for bit."""


def write_config(folder: Path, shards: Path) -> Path:
    """Write the settings of `PLAIN`."""
    path = folder / "run.toml"
    path.write_text(PLAIN.format(shards=shards), encoding="utf-8")
    return path


def setting(**values: object) -> list[str]:
    """Return the options that set `section__key=value`."""
    return [
        text
        for name, value in values.items()
        for text in ("--set", f"{name.replace('__', '.')}={value}")
    ]


@dataclass
class Process:
    """One process that runs litebert."""

    server: Server
    pid: int
    log: Path

    def lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []

    def wait_for(self, line: str) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while line not in self.lines():
            self.server.listen()
            assert time.monotonic() < end and self.pid not in self.server.codes, self.lines()
            time.sleep(0.005)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        end = time.monotonic() + seconds
        while self.pid not in self.server.codes:
            assert time.monotonic() < end, self.lines()
            self.server.listen(0.05)
        return self.server.codes[self.pid]

    def kill(self) -> bool:
        """Kill it; False when it had ended."""
        self.server.listen()
        if self.pid in self.server.codes:
            return False
        self.signal(signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    def finished(self) -> Process:
        """Wait for the end, which must be a good one."""
        assert self.wait() == 0, "\n".join(self.lines())
        return self

    def told(self, word: str) -> list[str]:
        """What followed `word` on the lines that begin with it."""
        return [
            line.removeprefix(f"{word} ") for line in self.lines() if line.startswith(f"{word} ")
        ]

    @property
    def weights(self) -> str:
        return self.told("weights")[-1]

    @property
    def samples(self) -> dict[int, list[int]]:
        """Step -> numbers of its samples."""
        split = [text.partition(" ") for text in self.told("batch")]
        return {int(step): json.loads(numbers) for step, _, numbers in split}


class Server:
    """Starts processes; see `pretrain_script.py`."""

    def __init__(self, logs: Path, warm_up: list[str]) -> None:
        self.logs, self.numbers = logs, count()
        self.codes: dict[int, int] = {}
        self._rest = b""
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *warm_up],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        self._answers = self.process.stdout
        answer = self._answers.readline()
        if answer != b"ready\n":
            rest, _ = self.process.communicate()
            raise AssertionError(answer + rest)
        os.set_blocking(self._answers.fileno(), False)
        self._started: list[int] = []

    def listen(self, seconds: float = 0.0) -> None:
        """Take in what the server has said, waiting a moment at most."""
        time.sleep(seconds)
        self._rest += self._answers.read() or b""
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            word, pid, *code = line.split()
            if word == b"pid":
                self._started.append(int(pid))
            else:
                self.codes[int(pid)] = int(code[0])

    def start(
        self,
        config: Path,
        out: Path,
        *arguments: str,
        env: dict[str, str] | None = None,
        resume: bool = True,
        **hooks: Any,
    ) -> Process:
        """Run `litebert pretrain CONFIG --out OUT --resume ARGUMENTS`."""
        log = self.logs / f"{next(self.numbers)}.log"
        argv = ["pretrain", str(config), "--out", str(out), *arguments]
        order = {
            "log": str(log),
            "argv": [*argv, "--resume"] if resume else argv,
            "env": env or {},
            "cwd": str(self.logs),
            "hooks": hooks,
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        end = time.monotonic() + PATIENCE_SECONDS
        while not self._started:
            assert time.monotonic() < end and self.process.poll() is None
            self.listen(0.005)
        return Process(self, self._started.pop(), log)

    def close(self) -> None:
        self.process.communicate()


def metrics(folder: Path) -> Metrics:
    """Return the lines of `metrics.jsonl` without what depends on the clock."""
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        del line["timing"]
    return lines


def states(folder: Path) -> list[int]:
    """Return the steps that have a saved state."""
    return sorted(int(path.name[5:]) for path in (folder / "checkpoints").glob("step-*"))
