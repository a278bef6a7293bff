"""Real processes: a table to train on, and a finished run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "data"))
from pretrain_processes import Server, write_config
from shard_fixture import make_shards

SMALL = (
    "--model", "tiny", "--epochs", "2", "--batch-size", "16", "--seed", "3", "--seeds", "1",
    "--set", "model.vocab_size=100", "--set", "train.threads=1", "--set", "train.precision=fp32",
    "--set", "model.config.hidden_size=32", "--set", "model.config.num_attention_heads=2",
    "--set", "model.config.intermediate_size=64", "--set", "train.guard.enabled=false",
)  # fmt: skip
"""A model that trains in seconds, and is repeatable bit for bit."""

Litebert = Callable[..., subprocess.CompletedProcess[bytes]]


@dataclass(frozen=True)
class Run:
    """A finished training: its folder, the folder it was started in, and what it printed."""

    path: Path
    cwd: Path
    stdout: str
    stderr: str


def environment(**changes: str | None) -> dict[str, str]:
    """Return the environment of a child: one thread, and the changes; None removes a name."""
    values: Mapping[str, str | None] = {**os.environ, "OMP_NUM_THREADS": "1"} | changes
    return {name: value for name, value in values.items() if value is not None}


@pytest.fixture(scope="session")
def litebert() -> Litebert:
    """Run `litebert ARGUMENTS` as a process without a terminal."""

    def run(
        *arguments: object,
        cwd: Path,
        stdin: bytes | None = b"",
        env: Mapping[str, str | None] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "litebert", *map(str, arguments)],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            env=environment(**(env or {})),
            timeout=240,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reviews written here, two classes that a bag of words can tell apart."""
    random.seed(5)
    words = {
        "good": ("works well", "a joy to use", "better than I hoped", "sturdy and quiet"),
        "bad": ("came broken", "stopped after a day", "a waste of money", "loud and flimsy"),
    }
    things = ("kettle", "lamp", "radio", "chair", "ladder")
    lines = ["nr,review,sentiment"]
    for number in range(120):
        label = "good" if number % 2 else "bad"
        first, second = random.sample(words[label], 2)
        lines.append(f'{number},"the {random.choice(things)}: {first}, {second}",{label}')
    path = tmp_path_factory.mktemp("data") / "kettle reviews é.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def finished(litebert: Litebert, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that a real process trained, in a folder with a space and an accent in its name."""
    cwd = tmp_path_factory.mktemp("work")
    out = cwd / "my run é"
    done = litebert("train", table, "--out", out.name, "--yes", *SMALL, cwd=cwd)
    stdout, stderr = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    assert done.returncode == 0, stderr
    return Run(out, cwd, stdout, stderr)


@dataclass(frozen=True)
class Pretraining:
    """Tiny shards, settings for them, and what starts processes."""

    server: Server
    config: Path
    shards: Path


@pytest.fixture(scope="session")
def pretraining(tmp_path_factory: pytest.TempPathFactory) -> Generator[Pretraining]:
    """Three shards of a few dozen examples, and a server that has trained on them once."""
    folder = tmp_path_factory.mktemp("pretraining")
    shards = make_shards(folder)
    config = write_config(folder, shards.folder)
    once = ["--set", "train.max_steps=1", "--out", str(folder / "first")]
    server = Server(folder, ["pretrain", str(config), *once])
    yield Pretraining(server, config, shards.folder)
    server.close()
