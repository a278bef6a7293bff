"""`litebert pretrain` in two processes: as one process, whoever is interrupted, killed or stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).parent))
from pretrain_processes import PATIENCE_SECONDS, Process, metrics, setting, states

IS_NIGHTLY = os.environ.get("LITEBERT_NIGHTLY", "") not in ("", "0")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(4000 if IS_NIGHTLY else 900)]
RANKS_ATOL = 2e-5
"""Two halves of a sum are added in another order: float32 rounding, grown over a dozen steps."""
LOST_SECONDS = 60
"""All ranks have ended so long after one of them died."""
STOPPED_SECONDS = 150
"""The same for one that hangs: its exchange times out, then the launcher waits 30 s to kill it."""
RANK_LOST = "one of them died or hangs"
STEPS = 12
OPTIONS = setting(
    train__max_steps=STEPS,
    train__log_steps=1,
    model__config__hidden_dropout_prob=0,
    model__config__attention_probs_dropout_prob=0,
)
"""Without dropout, whose masks differ between ranks on purpose."""
RAMP = setting(train__batch_ramp__start_batch_size=1, train__batch_ramp__fraction=0.6)
"""The first steps have one example: the second rank has none."""


def start_ranks(pretraining, out: Path, *options: str, world: int = 2, **hooks) -> list[Process]:
    """Start the ranks as a launcher would; `hooks` name a rank or are for all: `rank_1={...}`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {name: value for name, value in hooks.items() if not name.startswith("rank_")}
    return [
        pretraining.server.start(
            pretraining.config,
            out,
            *OPTIONS,
            *options,
            env={
                "RANK": str(rank),
                "WORLD_SIZE": str(world),
                "LOCAL_RANK": str(rank),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            },
            **common,
            **hooks.get(f"rank_{rank}", {}),
        )
        for rank in range(world)
    ]


@contextmanager
def ended_after(ranks: list[Process]) -> Generator[None]:
    """Leave no process behind, whatever happens in the block."""
    try:
        yield
    finally:
        for rank in ranks:
            rank.kill()


def start_one(pretraining, out: Path, *options: str, **hooks) -> Process:
    return pretraining.server.start(pretraining.config, out, *OPTIONS, *options, **hooks)


def together(ranks: list[Process]) -> dict[int, list[int]]:
    """Return the samples of each step in the order of the stream."""
    first, second = (rank.samples for rank in ranks)
    steps: dict[int, list[int]] = {}
    for step, numbers in first.items():
        whole = [0] * (len(numbers) + len(second[step]))
        whole[0::2], whole[1::2] = numbers, second[step]
        steps[step] = whole
    return steps


@pytest.fixture(scope="module")
def alone(pretraining, tmp_path_factory) -> tuple[Process, Path]:
    """The run of one process."""
    out = tmp_path_factory.mktemp("alone") / "run"
    return start_one(pretraining, out, *RAMP).finished(), out


def numbers(folder: Path) -> list[float]:
    """Return every number of the log, in order."""
    found = re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", json.dumps(metrics(folder)))
    return [float(text) for text in found]


def weights(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model-last" / "model.safetensors")


def check_close(folder: Path, other: Path) -> None:
    """Two runs differ by rounding alone."""
    ours, theirs = weights(folder), weights(other)
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        np.testing.assert_allclose(values, theirs[name], rtol=0, atol=RANKS_ATOL, err_msg=name)
    np.testing.assert_allclose(numbers(folder), numbers(other), rtol=1e-3, atol=RANKS_ATOL)


def test_two_ranks_train_as_one(pretraining, alone, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ranks = start_ranks(pretraining, out, *RAMP)
    with ended_after(ranks):
        for rank in ranks:
            rank.finished()
    assert together(ranks) == alone[0].samples
    assert ranks[1].samples[0] == []
    assert ranks[0].weights == ranks[1].weights, "the ranks agree to the last bit"
    check_close(out, alone[1])
    assert not ranks[1].told("saving") and "saving" not in ranks[1].lines()
    names = [sorted(str(p.relative_to(f)) for p in f.rglob("*")) for f in (out, alone[1])]
    assert names[0] == names[1], "one rank wrote what one process writes"


@pytest.mark.parametrize(
    ("rank", "hook"), [(0, "signals"), (0, "batch_signals"), (1, "batch_signals")]
)
def test_a_signal_to_one_rank_ends_both_and_any_number_goes_on(
    pretraining, alone, tmp_path: Path, rank: int, hook: str
) -> None:
    """Two ranks, then one, then two again: the same stream of samples.

    The signal comes between two steps, when the ranks have agreed to go on, or within a step.
    """
    out = tmp_path / "run"
    hooks = {f"rank_{rank}": {hook: {"4": signal.SIGTERM}}}
    ranks = start_ranks(pretraining, out, *RAMP, **hooks)
    with ended_after(ranks):
        assert [rank.wait() for rank in ranks] == [143, 143], ranks[0].lines() + ranks[1].lines()
    stopped = states(out)[-1]
    assert stopped == 5, "the others hear of it in the next step"
    assert f"stopped at step {stopped}; continue with" in "\n".join(ranks[0].lines())
    one = start_one(pretraining, out, *RAMP, signals={"8": signal.SIGINT})
    assert one.wait() == 130
    last = start_ranks(pretraining, out, *RAMP)
    with ended_after(last):
        for rank in last:
            rank.finished()
    assert together(ranks) | one.samples | together(last) == alone[0].samples
    assert min(one.samples) == stopped and min(last[0].samples) == 8
    check_close(out, alone[1])


def test_a_time_budget_ends_all_ranks_at_the_same_step(pretraining, tmp_path: Path) -> None:
    """Clocks differ; the ranks go by the first one's, also for the learning rate."""
    budget = setting(train__max_seconds=2, train__shallow_start__depth=1, train__max_steps=10_000)
    ranks = start_ranks(
        pretraining, tmp_path / "run", *budget, rank_0={"pause": 0.02}, rank_1={"pause": 0.05}
    )
    with ended_after(ranks):
        for rank in ranks:
            rank.finished()
    assert ranks[0].weights == ranks[1].weights
    assert ranks[0].samples.keys() == ranks[1].samples.keys()
    assert metrics(tmp_path / "run")[-1]["step"] < 10_000


def test_a_refusal_of_the_first_rank_ends_both(pretraining, alone) -> None:
    other = setting(objectives__order="nsp")
    ranks = start_ranks(pretraining, alone[1], *other)
    with ended_after(ranks):
        codes = [rank.wait(LOST_SECONDS) for rank in ranks]
        assert codes[0] == 65 and codes[1] != 0
        assert "cannot resume with other settings" in "\n".join(ranks[0].lines())
        assert "Traceback" not in "\n".join(ranks[0].lines() + ranks[1].lines())


def test_a_full_disk_of_the_first_rank_stops_neither(pretraining, alone, tmp_path: Path) -> None:
    ranks = start_ranks(pretraining, tmp_path / "run", *RAMP, rank_0={"no_space": [2, 10]})
    with ended_after(ranks):
        for rank in ranks:
            rank.finished()
    assert sum("was not saved" in line for line in ranks[0].lines()) >= 2
    check_weights(tmp_path / "run", alone[1])


def check_weights(folder: Path, other: Path) -> None:
    for name, values in weights(folder).items():
        np.testing.assert_allclose(values, weights(other)[name], rtol=0, atol=RANKS_ATOL)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_rank_ends_the_other(pretraining, tmp_path: Path, lost: int) -> None:
    out = tmp_path / "run"
    ranks = start_ranks(pretraining, out, *setting(train__max_steps=10_000), pause=0.02)
    with ended_after(ranks):
        ranks[0].wait_for("step 5")
        assert ranks[lost].kill()
        other = ranks[1 - lost]
        assert other.wait(LOST_SECONDS) == 75
        text = "\n".join(other.lines())
        assert f"rank {1 - lost} of 2 cannot reach the others" in text
        assert RANK_LOST in text and "--resume" in text
        assert "Traceback" not in text
    one = start_one(
        pretraining, out, *setting(train__max_steps=10_000), signals={"7": signal.SIGTERM}
    )
    assert one.wait() == 143


def test_a_rank_that_hangs_ends_the_other(pretraining, tmp_path: Path) -> None:
    limit = setting(train__rank_timeout_seconds=8, train__max_steps=10_000)
    ranks = start_ranks(pretraining, tmp_path / "run", *limit, pause=0.02)
    with ended_after(ranks):
        ranks[0].wait_for("step 5")
        ranks[1].signal(signal.SIGSTOP)
        assert ranks[0].wait(LOST_SECONDS) == 75
        assert RANK_LOST in "\n".join(ranks[0].lines())


def test_bytes_of_the_gradient_are_those_of_the_unique_weights(pretraining, tmp_path: Path) -> None:
    """Depth 4, one shared block against four of their own; the run has two objectives."""
    reduced: dict[str, int] = {}
    for sharing in ("all", "none"):
        options = setting(
            model__config__num_hidden_layers=4,
            model__config__litebert__sharing=f'"{sharing}"',
            train__max_steps=1,
        )
        out = tmp_path / sharing
        ranks = start_ranks(pretraining, out, *options)
        with ended_after(ranks):
            for rank in ranks:
                rank.finished()
        found = [int(rank.told("reduced")[0]) for rank in ranks]
        assert found[0] == found[1]
        reduced[sharing] = found[0]
        unique = sum(values.size for values in weights(out).values())
        numbers = 2 + 3  # two losses; tokens, clock and the wish to stop
        assert found[0] == 4 * (unique + numbers)
    block = 4 * (4 * (16 * 16 + 16) + 2 * 16 * 32 + 16 + 32 + 4 * 16)
    assert reduced["none"] - reduced["all"] == 3 * block


@contextmanager
def torchrun(pretraining, out: Path, *options: str) -> Generator[subprocess.Popen[bytes]]:
    """Run `torchrun --no-python litebert pretrain ...` with two processes."""
    log = out.parent / "torchrun.log"
    arguments = ["pretrain", str(pretraining.config), "--out", str(out), "--resume", *OPTIONS]
    with log.open("wb") as file:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "torch.distributed.run", "--standalone",
                "--nproc-per-node", "2", "--no-python", sys.executable, "-m", "litebert",
                *arguments, *setting(train__max_steps=100_000), *options,
            ],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (out / "metrics.jsonl").exists() or metrics_steps(out) < 3:
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield process
    finally:
        for pid in ranks_of(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()


def metrics_steps(out: Path) -> int:
    return (out / "metrics.jsonl").read_bytes().count(b"\n")


def ranks_of(launcher: int) -> list[int]:
    """Return the processes of a launcher, the first rank first."""
    try:
        tasks = list(Path(f"/proc/{launcher}/task").iterdir())
        children = [int(c) for t in tasks for c in (t / "children").read_text().split()]
    except OSError:
        return []
    found: dict[int, int] = {}
    for child in children:
        try:
            variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ranks = [v for v in variables if v.startswith(b"RANK=")]
        if ranks:
            found[int(ranks[0][5:])] = child
    return [found[rank] for rank in sorted(found)]


def test_torchrun_told_to_stop_saves_and_ends(pretraining, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with torchrun(pretraining, out) as launcher:
        children = ranks_of(launcher.pid)
        assert len(children) == 2
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(PATIENCE_SECONDS) != 0
    log = (tmp_path / "torchrun.log").read_text()
    stopped = states(out)[-1]
    assert f"stopped at step {stopped:,}; continue with: litebert pretrain" in log, log
    assert RANK_LOST not in log
    more = setting(train__max_steps=100_000)
    one = start_one(pretraining, out, *more, signals={str(stopped + 2): signal.SIGTERM})
    assert one.wait() == 143
    assert sorted(one.samples) == [stopped, stopped + 1]


@pytest.mark.skipif(
    not IS_NIGHTLY, reason="LITEBERT_NIGHTLY is not set; without torchrun see above"
)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_torchrun_ends_all_when_one_is_lost(pretraining, tmp_path: Path, number: int) -> None:
    options = setting(train__rank_timeout_seconds=8)
    with torchrun(pretraining, tmp_path / "run", *options) as launcher:
        children = ranks_of(launcher.pid)
        os.kill(children[1], number)
        limit = LOST_SECONDS if number == signal.SIGKILL else STOPPED_SECONDS
        assert launcher.wait(limit) != 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    assert RANK_LOST in (tmp_path / "torchrun.log").read_text()
