"""`litebert prepare` as a process: killed at any moment it goes on, and nothing stays behind."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from shard_fixture import sample_documents

from litebert.text.vocabulary import train_vocabulary

from .conftest import Litebert, environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
]

WAIT_SECONDS = 120.0
DEATH_SECONDS = 60.0
"""On a quiet machine a dead worker is noticed at once; here many tests may share a core."""
OPTIONS = ("--shard-tokens", "40000", "--eval-fraction", "0.05", "--dedup", "exact", "-j", "2")


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    train_vocabulary([s for d in sample_documents(60) for s in d], 120, folder)
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    documents = sample_documents(300)
    for name in range(4):
        blocks = [
            "\n".join(f"{sentence} {name} {copy}." for sentence in document)
            for copy in range(8)
            for document in documents
        ]
        (folder / f"{name}.txt").write_text("\n\n".join(blocks), encoding="utf-8")
    return folder


def command(corpus: Path, vocabulary: Path, out: Path) -> list[str]:
    return ["prepare", str(corpus), "--tokenizer", str(vocabulary), "--out", str(out), *OPTIONS]


@pytest.fixture(scope="module")
def whole(
    litebert: Litebert, corpus: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The result of a run that nobody stopped."""
    out = tmp_path_factory.mktemp("whole") / "out"
    done = litebert(*command(corpus, vocabulary, out), "--json", cwd=out.parent)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert values["shards"] > 10
    assert values["eval_documents"] > 100
    return out


def start(
    corpus: Path, vocabulary: Path, out: Path, limit: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "litebert", *command(corpus, vocabulary, out)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=limit,  # noqa: PLW1509 - no threads here
    )


def shards_in(out: Path) -> int:
    return len(list(out.glob("shard-*.ids.bin")))


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "prepare.lock"
    }


@pytest.mark.timeout(900)
def test_stopped_by_every_signal_it_goes_on_to_the_same_bytes(
    litebert: Litebert, corpus: Path, vocabulary: Path, whole: Path, tmp_path: Path
) -> None:
    out, before = tmp_path / "out", 0
    for number, code in (
        (signal.SIGTERM, 143),
        (signal.SIGKILL, -9),
        (signal.SIGINT, 130),
        (signal.SIGKILL, -9),
    ):
        process = start(corpus, vocabulary, out)
        wait_for(lambda: shards_in(out) > before + 1, process)  # noqa: B023
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        message = process.communicate(timeout=WAIT_SECONDS)[1].decode()
        assert process.returncode == code, message
        if code > 0:
            assert "go on with the same command" in message
            assert not list(out.glob(".shard*"))
        _, alive = psutil.wait_procs(workers, timeout=DEATH_SECONDS)
        assert not alive
        before = shards_in(out)
    done = litebert(*command(corpus, vocabulary, out), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"going on after" in done.stderr
    assert digests(out) == digests(whole)
    again = litebert(*command(corpus, vocabulary, out), cwd=tmp_path)
    assert again.returncode == 0
    assert b"finished already; nothing was done" in again.stdout
    other = litebert(*command(corpus, vocabulary, out), "--seed", "4", cwd=tmp_path)
    assert other.returncode == 2
    assert b"with seed = 0, now it is 4" in other.stderr


def test_a_dead_worker_and_a_second_process(
    litebert: Litebert, corpus: Path, vocabulary: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start(corpus, vocabulary, out)
    wait_for(lambda: shards_in(out) > 0, process)
    process.send_signal(signal.SIGSTOP)  # so that there is work left, however long this takes
    second = litebert(*command(corpus, vocabulary, out), cwd=tmp_path)
    assert second.returncode == 65
    assert f"in use by process {process.pid}".encode() in second.stderr
    workers = [
        child
        for child in psutil.Process(process.pid).children()
        if any("spawn_main" in part for part in child.cmdline())
    ]
    assert len(workers) == 2
    os.kill(workers[0].pid, signal.SIGKILL)
    process.send_signal(signal.SIGCONT)
    message = process.communicate(timeout=DEATH_SECONDS)[1].decode()
    assert process.returncode == 75, message
    assert "a worker process was killed" in message
    assert "Traceback" not in message
    done = litebert(*command(corpus, vocabulary, out), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert digests(out) == digests(whole)


def test_a_disk_that_is_full(
    litebert: Litebert, corpus: Path, vocabulary: Path, whole: Path, tmp_path: Path
) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    process = start(corpus, vocabulary, tmp_path / "out", limit)
    message = process.communicate(timeout=WAIT_SECONDS)[1].decode()
    assert process.returncode == 74, message
    assert "finished shards are kept" in message
    assert "Traceback" not in message
    done = litebert(*command(corpus, vocabulary, tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "out") == digests(whole)


def test_a_vocabulary_that_does_not_fit_is_warned_of(
    litebert: Litebert, vocabulary: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("Съешь же ещё этих мягких булок, да выпей чаю.\n" * 4)
    done = litebert(
        "prepare", "a.txt", "-t", vocabulary, "-o", "out", "--min-characters", "1", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert b"of the tokens are unknown to this vocabulary" in done.stdout


def test_wrong_usage_is_told(litebert: Litebert, vocabulary: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A line.\n")
    missing = litebert("prepare", "nothing.txt", "-t", vocabulary, "-o", "out", cwd=tmp_path)
    assert missing.returncode == 66
    assert b"nothing.txt" in missing.stderr
    splitter = litebert(
        "prepare", "a.txt", "-t", vocabulary, "-o", "out", "--sentences", "magic", cwd=tmp_path
    )
    assert splitter.returncode == 2
    assert b"magic" in splitter.stderr
    tokenizer = litebert("prepare", "a.txt", "-t", tmp_path, "-o", "out", cwd=tmp_path)
    assert tokenizer.returncode == 65
    assert not (tmp_path / "out").exists()
