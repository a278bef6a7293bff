"""The whole command on input made to break it: a short message and the documented code, no traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

GOOD = "text,label\n" + "".join(
    f"the parcel number {i} came {'late' if i % 2 else 'early'},{'bad' if i % 2 else 'good'}\n"
    for i in range(40)
)
TRAIN = ("--model", "tiny", "--epochs", "1", "--seeds", "1", "--no-baselines", "--yes")
LIMIT_SECONDS = 300
"""Generous for a start of Python on a busy machine; what waits for a pipe would wait for ever."""


def litebert(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [sys.executable, "-m", "litebert", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_SECONDS,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )
    assert "Traceback" not in result.stderr, result.stderr
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the smallest size."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "t.csv").write_text(GOOD)
    result = litebert("train", folder / "t.csv", *TRAIN, "--out", folder / "run")
    assert result.returncode == 0, result.stderr
    return folder / "run"


def name_code(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"litebert": {"sharing": "os:abort"}}))


def pipe_for_task(model: Path) -> None:
    (model / "task.json").unlink()
    os.mkfifo(model / "task.json")


def device_for_task(model: Path) -> None:
    (model / "task.json").unlink()
    (model / "task.json").symlink_to("/dev/zero")


def no_temperature(model: Path) -> None:
    task = json.loads((model / "task.json").read_text())
    (model / "task.json").write_text(json.dumps(task | {"temperature": 1e-320}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (name_code, "names code"),
        (pipe_for_task, "is a pipe"),
        (device_for_task, "/dev/zero"),
        (no_temperature, "temperature"),
    ],
)
def test_a_model_folder_that_an_enemy_edited(
    run: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    model = tmp_path / "model"
    shutil.copytree(run / "model-best", model)
    damage(model)
    result = litebert("predict", model, "some text")
    assert (result.returncode, result.stdout) == (65, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("content", "options", "code", "message"),
    [
        ("text,label\na b,x\nc d,y\n", (), 65, "left to train on have the one label"),
        (GOOD, ("--epochs", "inf"), 2, "train.epochs"),
        (GOOD, ("--set", "train.optimizer=nope"), 2, "unknown optimizer"),
        (GOOD, ("--set", "model.config.litebert.sharing=math:sqrt"), 2, "cannot be called"),
    ],
)
def test_what_makes_no_run_is_said_before_it(
    tmp_path: Path, content: str, options: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "t.csv").write_text(content)
    result = litebert("train", tmp_path / "t.csv", *TRAIN, *options, "--out", tmp_path / "run")
    assert result.returncode == code
    assert message in result.stderr
    assert not (tmp_path / "run").exists()


def test_resuming_with_changed_data_is_refused(run: Path, tmp_path: Path) -> None:
    data = run.parent / "t.csv"
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    try:
        data.write_text(GOOD.replace("late,bad", "late,good", 1))
        result = litebert("train", "--resume", folder)
    finally:
        data.write_text(GOOD)
    assert result.returncode == 65
    assert "cannot resume with other data" in result.stderr


def test_without_the_optional_packages_a_model_is_still_made(tmp_path: Path) -> None:
    for name in ("sklearn", "matplotlib"):
        (tmp_path / "absent" / name).mkdir(parents=True)
        (tmp_path / "absent" / name / "__init__.py").write_text("raise ImportError('absent')\n")
    (tmp_path / "t.csv").write_text(GOOD)
    out = tmp_path / "run"
    result = litebert(
        "train", tmp_path / "t.csv", *TRAIN, "--out", out, PYTHONPATH=str(tmp_path / "absent")
    )
    assert result.returncode == 0, result.stderr
    assert "word vectors start at random" in result.stderr
    assert "the plots are left out" in result.stderr
    assert (out / "model-best" / "model.safetensors").is_file()
    assert (out / "report.html").is_file()
