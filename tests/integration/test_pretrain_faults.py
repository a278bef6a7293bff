"""`litebert pretrain` killed, stopped, doubled and starved: it loses nothing and replays nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "data"))
from pretrain_processes import STEPS, Process, metrics, setting, states
from shard_fixture import make_shards, sample_documents

IS_NIGHTLY = os.environ.get("LITEBERT_NIGHTLY", "") not in ("", "0")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(4000 if IS_NIGHTLY else 900)]
KILLS = 50 if IS_NIGHTLY else 5
SOAK_STEPS = 20_000 if IS_NIGHTLY else 300
SOAK_SECONDS = 3600 if IS_NIGHTLY else 800
SOAK_GROWTH = 0.02
"""Of resident memory, from the first third of the steps to the last."""
RICH = setting(
    train__batch_ramp__start_batch_size=4,
    train__batch_ramp__fraction=0.5,
    train__shallow_start__depth=1,
    train__shallow_start__fraction=0.4,
    objectives__mlm__schedule="linear",
    objectives__mlm__mask_fraction=0.3,
    objectives__mlm__end_fraction=0.15,
)
"""What changes in the course of a run: batch size, depth, masked part; and, always, the rate."""
BATCH_SIZE = 8


def check_same(process: Process, folder: Path, whole: Process, whole_folder: Path) -> None:
    """The run in `folder` has ended as the uninterrupted one did, bit for bit."""
    assert process.finished().weights == whole.finished().weights
    assert metrics(folder) == metrics(whole_folder)
    names = ("model.safetensors", "config.json", "tokenizer.json")
    for name in names:
        ours, theirs = (path / "model-last" / name for path in (folder, whole_folder))
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.fixture(scope="module")
def whole(pretraining, tmp_path_factory) -> tuple[Process, Path]:
    """The uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return pretraining.server.start(pretraining.config, folder).finished(), folder


def test_killed_at_random_moments(pretraining, whole, tmp_path: Path) -> None:
    """In start-up, in steps, in evaluations, while saving: wherever it is."""
    rng, out, done = random.Random(8), tmp_path / "run", 0
    samples: dict[int, list[int]] = {}
    while done < KILLS:
        process = pretraining.server.start(pretraining.config, out, pause=0.005, slow_eval=0.02)
        if done % 4 == 0:
            time.sleep(rng.random() * 0.6)  # anywhere from the first file on
        else:
            process.wait_for(f"step {1 + (STEPS - 2) * done // KILLS}")
            time.sleep(rng.random() * 0.1)
        done += process.kill()
        for step, numbers in process.samples.items():
            assert samples.setdefault(step, numbers) == numbers
    check_same(pretraining.server.start(pretraining.config, out), out, *whole)


def test_killed_inside_file_operations(pretraining, whole, tmp_path: Path) -> None:
    """While the run folder is begun, and while model, summary, plots and card are written."""
    out = tmp_path / "run"
    at_the_beginning = range(1, 20, 1 if IS_NIGHTLY else 5)
    for n in at_the_beginning:
        process = pretraining.server.start(pretraining.config, out, kill_at=n)
        assert process.wait() == -signal.SIGKILL, process.lines()
    check_same(pretraining.server.start(pretraining.config, out), out, *whole)
    last = pretraining.server.start(pretraining.config, out).finished()
    total = int(last.told("operations")[0])
    for n in range(1, total, 1 if IS_NIGHTLY else total // 3):
        process = pretraining.server.start(pretraining.config, out, kill_at=n)
        assert process.wait() == -signal.SIGKILL, process.lines()
    check_same(pretraining.server.start(pretraining.config, out), out, *whole)
    assert not list(out.glob("**/.*tmp*")), "nothing is left over"


@pytest.mark.parametrize(
    ("optimizer", "workers", "others"), [("lamb", 2, (0, 1)), ("muon", 0, (2, 0))]
)
def test_everything_that_changes_in_a_run_resumes(
    pretraining, tmp_path: Path, optimizer: str, workers: int, others: tuple[int, int]
) -> None:
    """Killed, then stopped, each part with another number of workers."""
    options = [*RICH, *setting(train__optimizer=optimizer, train__max_steps=20)]
    folders = tmp_path / "whole", tmp_path / "run"

    def start(folder: Path, workers: int, **hooks: object) -> Process:
        with_workers = [*options, *setting(train__data_workers=workers)]
        return pretraining.server.start(pretraining.config, folder, *with_workers, **hooks)

    first = start(folders[1], workers, pause=0.03)
    first.wait_for("step 6")
    assert first.kill()
    assert start(folders[1], others[0], signals={"11": signal.SIGTERM}).wait() == 143
    assert states(folders[1])[-1] == 11
    last = start(folders[1], others[1])
    check_same(last, folders[1], start(folders[0], 0), folders[0])


def test_workers_end_with_a_killed_run(pretraining, tmp_path: Path) -> None:
    """Nobody is left to tell them; they must see it themselves."""
    workers = setting(train__data_workers=2)
    process = pretraining.server.start(pretraining.config, tmp_path / "run", *workers, pause=0.05)
    process.wait_for("step 3")
    children = children_of(process.pid)
    assert len(children) >= 2
    assert process.kill()
    end = time.monotonic() + 30
    while any(is_running(pid) for pid in children):
        assert time.monotonic() < end, "worker processes are left over"
        time.sleep(0.05)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_at_any_step_saves_and_ends(
    pretraining, whole, tmp_path: Path, number: int, code: int
) -> None:
    """Also at the step before the end of an epoch, at the end, and after it."""
    border = last_step_of_first_epoch(*whole)
    random_steps = random.Random(number).sample(range(5, STEPS), 2)
    out = tmp_path / "run"
    for step in sorted({1, border, border + 1, *random_steps}):
        process = pretraining.server.start(pretraining.config, out, signals={str(step): number})
        assert process.wait() == code, process.lines()
        assert states(out)[-1] == step
        assert f"stopped at step {step}; continue with: litebert pretrain" in "\n".join(
            process.lines()
        )
    check_same(pretraining.server.start(pretraining.config, out), out, *whole)


def last_step_of_first_epoch(process: Process, folder: Path) -> int:
    """Return the step that has samples of two epochs."""
    facts = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    length = facts["train_examples"] + facts["eval_examples"]
    return next(step for step, numbers in process.samples.items() if max(numbers) >= length)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_during_an_evaluation(
    pretraining, whole, tmp_path: Path, number: int, code: int
) -> None:
    out = tmp_path / "run"
    process = pretraining.server.start(pretraining.config, out, slow_eval=60)
    process.wait_for("evaluating")
    process.signal(number)
    assert process.wait() == code
    assert states(out)[-1] == 6
    check_same(pretraining.server.start(pretraining.config, out), out, *whole)


def test_nothing_is_made_twice(pretraining, whole, tmp_path: Path) -> None:
    """A run that goes on at step 30 makes the examples of 10 steps."""
    out = tmp_path / "run"
    first = pretraining.server.start(pretraining.config, out, signals={"30": signal.SIGTERM})
    assert first.wait() == 143
    second = pretraining.server.start(pretraining.config, out).finished()
    made = [int(process.told("made")[0]) for process in (first, second, whole[0])]
    assert made == [30 * BATCH_SIZE, (STEPS - 30) * BATCH_SIZE, STEPS * BATCH_SIZE]
    assert first.samples | second.samples == whole[0].samples
    assert not set(first.samples) & set(second.samples)
    again = pretraining.server.start(pretraining.config, out).finished()
    assert again.told("made") == ["0"], "a finished run has nothing to do"
    assert again.weights == whole[0].weights


REFUSED = {
    "objectives": ("objectives.order", setting(objectives__order="nsp")),
    "weights": ("objectives.mlm", setting(objectives__mlm__mask_fraction=0.2)),
    "model": ("model.config", setting(model__config__num_hidden_layers=3)),
    "source": ("model.source", setting(model__source="tiny")),
    "length": ("data.max_length was 96, is 80", setting(data__max_length=80)),
    "batch": ("batch_size was 8, is 4", setting(train__batch_size=4)),
    "rate": ("learning_rate was 0.003, is 0.1", setting(train__learning_rate=0.1)),
    "optimizer": ("optimizer was 'adamw', is 'lamb'", setting(train__optimizer="lamb")),
    "seed": ("seed was 0, is 7", setting(train__seed=7)),
    "steps": ("max_steps was 40, is 50", setting(train__max_steps=50)),
}


def test_another_run_is_refused_by_name(pretraining, whole) -> None:
    """Nothing of the run that is there is touched."""
    before = fingerprint(whole[1])
    for name, (message, options) in REFUSED.items():
        process = pretraining.server.start(pretraining.config, whole[1], *options)
        assert process.wait() == 65, (name, process.lines())
        text = "\n".join(process.lines())
        assert "cannot resume with other settings" in text
        assert message in text, name
    assert fingerprint(whole[1]) == before


def test_other_data_in_the_same_place_are_refused(pretraining, tmp_path: Path) -> None:
    shards = make_shards(tmp_path).folder
    config = tmp_path / "run.toml"
    config.write_text(pretraining.config.read_text().replace(str(pretraining.shards), str(shards)))
    out = tmp_path / "run"
    process = pretraining.server.start(config, out, signals={"5": signal.SIGTERM})
    assert process.wait() == 143
    shards.rename(tmp_path / "old")
    make_shards(tmp_path / "new", sample_documents(20, 7)).folder.rename(shards)
    process = pretraining.server.start(config, out)
    assert process.wait() == 65, process.lines()
    assert any("shards" in line for line in process.lines())


def test_a_second_process_on_the_same_run_is_refused(pretraining, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = pretraining.server.start(pretraining.config, out, pause=0.2)
    first.wait_for("step 1")
    second = pretraining.server.start(pretraining.config, out)
    assert second.wait() == 65
    assert f"in use by process {first.pid} on" in "\n".join(second.lines())
    third = pretraining.server.start(pretraining.config, out, resume=False)
    assert third.wait() == 2
    assert "not empty" in "\n".join(third.lines())
    assert first.kill()


def test_a_disk_that_is_full_for_a_while_stops_nothing(pretraining, whole, tmp_path: Path) -> None:
    """The system's limit on the size of files stands in for a full disk."""
    out = tmp_path / "run"
    process = pretraining.server.start(pretraining.config, out, no_space=[10, 30]).finished()
    assert process.weights == whole[0].weights
    assert sum("was not saved" in line for line in process.lines()) >= 5
    assert states(out)[-2:] == [36, 40]


def test_memory_and_files_stay_as_they_are(pretraining, tmp_path: Path) -> None:
    options = setting(train__max_steps=SOAK_STEPS, train__eval_steps=50, train__save_steps=50)
    process = pretraining.server.start(pretraining.config, tmp_path / "run", *options)
    assert process.wait(SOAK_SECONDS) == 0
    told = [text.split() for text in process.told("resident")]
    assert len(told) == SOAK_STEPS // 10
    memory, files = ([int(numbers[place]) for numbers in told] for place in (2, 4))
    third = len(memory) // 3
    assert max(memory[-third:]) <= max(memory[third // 2 : third]) * (1 + SOAK_GROWTH)
    assert len(set(files[third // 2 :])) == 1


def fingerprint(folder: Path) -> dict[str, bytes]:
    """Content of every file that a refusal could touch."""
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("log.txt", "run.lock")
    }


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
