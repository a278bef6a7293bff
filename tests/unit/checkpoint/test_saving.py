from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from litebert.checkpoint.faults import FaultyFS
from litebert.checkpoint.folder import load_encoder, load_model, save_model
from litebert.checkpoint.fs import StorageError, use_fs
from litebert.checkpoint.weights import read_header
from litebert.errors import CheckpointError

Make = Callable[..., Any]

SIZE_FACTOR = 1.05
"""A file may exceed its unique parameters by its header."""


def states_equal(first: Any, second: Any) -> bool:
    a, b = first.state_dict(), second.state_dict()
    return list(a) == list(b) and all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture
def small(tmp_path: Path, make_model: Make) -> Path:
    """A folder with a model of few tensors, since each is written on its own."""
    folder = tmp_path / "saved"
    save_model(make_model("sequence", num_hidden_groups=1, inner_group_num=1), folder)
    (folder / "notes.txt").write_text("mine")
    return folder


def names_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("head", ["pretraining", "mlm", "sequence"])
def test_each_shared_weight_is_stored_once(tmp_path: Path, make_model: Make, head: str) -> None:
    sizes = {"vocab_size": 500, "hidden_size": 64, "intermediate_size": 256, "embedding_size": 32}
    model = make_model(head, num_hidden_layers=24, num_hidden_groups=1, inner_group_num=1, **sizes)
    save_model(model, tmp_path / "m")
    size = (tmp_path / "m" / "model.safetensors").stat().st_size
    assert size <= SIZE_FACTOR * 4 * sum(parameter.numel() for parameter in model.parameters())


def test_the_files_of_a_folder(tmp_path: Path, make_model: Make) -> None:
    save_model(
        make_model("sequence", id2label={0: "no", 1: "sí"}),
        tmp_path / "deep" / "m",
        task={"kind": "binary"},
        card="# Card",
        files={"calibration.json": "{}", "bytes": b"\0"},
    )
    folder = tmp_path / "deep" / "m"
    assert names_in(folder) == {
        "README.md", "bytes", "calibration.json", "config.json", "model.safetensors", "task.json",
    }  # fmt: skip
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["model_type"] == "albert"
    assert config["architectures"] == ["AlbertForSequenceClassification"]
    assert config["dtype"] == "float32"
    assert config["id2label"] == {"0": "no", "1": "sí"}
    assert json.loads((folder / "task.json").read_text()) == {"kind": "binary"}
    _, metadata = read_header(folder / "model.safetensors")
    assert metadata == {"format": "pt"}
    assert not list(tmp_path.glob(".*"))
    assert not list((tmp_path / "deep").glob(".*"))


def test_a_task_may_be_text(tmp_path: Path, make_model: Make) -> None:
    save_model(make_model(), tmp_path / "m", task='{"a": 1}')
    assert (tmp_path / "m" / "task.json").read_text() == '{"a": 1}'


def test_half_precision_is_stored_as_it_is(tmp_path: Path, make_model: Make) -> None:
    model = make_model().to(torch.bfloat16)
    save_model(model, tmp_path / "m")
    assert {t.dtype for t in load_file(tmp_path / "m" / "model.safetensors").values()} == {
        torch.bfloat16
    }
    assert json.loads((tmp_path / "m" / "config.json").read_text())["dtype"] == "bfloat16"
    assert states_equal(load_model(tmp_path / "m"), model.float())


def test_equal_models_give_equal_files(tmp_path: Path, make_model: Make) -> None:
    for name in ("a", "b"):
        save_model(make_model(), tmp_path / name)
    assert all(
        (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
        for file in names_in(tmp_path / "a")
    )


def test_an_encoder_that_came_from_a_headed_folder_is_saved_as_an_encoder(
    saved: Path, tmp_path: Path
) -> None:
    save_model(load_encoder(saved), tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["architectures"] == ["AlbertModel"]
    assert "pooler.weight" in load_file(tmp_path / "m" / "model.safetensors")


def test_other_files_of_the_folder_survive_but_old_weights_do_not(
    saved: Path, make_model: Make
) -> None:
    (saved / "notes.txt").write_text("mine")
    (saved / "onnx" / "deep").mkdir(parents=True)
    (saved / "onnx" / "deep" / "model.onnx").write_bytes(b"x" * 5_000_000)
    (saved / "onnx" / "config.json").write_text("{}")
    (saved / "tokenizer_config.json").write_text("{}")
    for stale in (
        "pytorch_model.bin",
        "model.safetensors.index.json",
        "model-00001-of-00002.safetensors",
    ):
        (saved / stale).write_text("old")
    new = make_model("token", seed=1)
    save_model(new, saved)
    assert states_equal(load_model(saved), new)
    assert names_in(saved) == {
        "config.json", "model.safetensors", "notes.txt", "onnx/config.json",
        "onnx/deep/model.onnx", "tokenizer_config.json",
    }  # fmt: skip
    assert (saved / "onnx" / "deep" / "model.onnx").stat().st_size == 5_000_000
    assert list(saved.parent.iterdir()) == [saved]


def test_only_a_model_folder_is_replaced(tmp_path: Path, make_model: Make) -> None:
    (tmp_path / "empty").mkdir()
    save_model(make_model(), tmp_path / "empty")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.tex").write_text("years")
    with pytest.raises(CheckpointError, match="no model folder; choose an empty one"):
        save_model(make_model(), tmp_path / "work")
    with pytest.raises(CheckpointError, match="cannot be the name of a model folder"):
        save_model(make_model(), "a\0b")
    with pytest.raises(CheckpointError, match="is not a folder"):
        save_model(make_model(), tmp_path / "work" / "thesis.tex")
    assert names_in(tmp_path / "work") == {"thesis.tex"}


def test_a_link_to_a_model_folder_is_followed(saved: Path, make_model: Make) -> None:
    link = saved.parent / "latest"
    link.symlink_to(saved)
    new = make_model(seed=2)
    save_model(new, link)
    assert link.is_symlink()
    assert states_equal(load_model(saved), new)


def test_a_folder_with_a_pipe_is_not_replaced(saved: Path, make_model: Make) -> None:
    os.mkfifo(saved / "pipe")
    with pytest.raises(CheckpointError, match="is a pipe"):
        save_model(make_model(), saved)


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "spiece.model", "../x", "a/b", ""]
)
def test_names_of_further_files(tmp_path: Path, make_model: Make, name: str) -> None:
    with pytest.raises(CheckpointError, match="cannot add a file"):
        save_model(make_model(), tmp_path / "m", files={name: b""})
    assert not list(tmp_path.iterdir())


def test_a_diverged_model_does_not_replace_a_good_one(saved: Path, make_model: Make) -> None:
    good = load_model(saved)
    bad = make_model()
    with torch.no_grad():
        bad.model.pooler.bias[3] = float("nan")
    with pytest.raises(CheckpointError, match=r"not finite, first 'model\.pooler\.bias'"):
        save_model(bad, saved)
    assert states_equal(load_model(saved), good)


def test_a_full_disk_is_told_before_anything_is_written(saved: Path, make_model: Make) -> None:
    fs = FaultyFS(free_bytes=100)
    with use_fs(fs), pytest.raises(StorageError, match="100 bytes free"):
        save_model(make_model(), saved)
    assert fs.operations == []


@pytest.mark.parametrize(("fault", "only"), [("error", None), ("short_write", "write")])
def test_whatever_operation_fails_the_old_or_the_new_model_is_there(
    small: Path, make_model: Make, fault: Any, only: str | None
) -> None:
    old, new = load_model(small), make_model(seed=3, num_hidden_groups=1, inner_group_num=1)
    recording = FaultyFS()
    with use_fs(recording):
        save_model(old, small)
    count = sum(only in (None, name) for name, _ in recording.operations)
    for n in range(1, count + 1):
        with use_fs(FaultyFS(n, fault=fault, only=only)), pytest.raises(StorageError):
            save_model(new, small)
        found = load_model(small)
        assert (small / "notes.txt").read_text() == "mine"
        if not states_equal(found, old):
            assert states_equal(found, new)
            save_model(old, small)
    # A folder that was swapped out but could not be deleted may stay, and no other.
    assert {path.name.split("-")[0] for path in small.parent.iterdir()} <= {"saved", ".saved.tmp"}


@pytest.mark.slow
def test_kill_at_every_operation_leaves_the_old_or_the_new_model(small: Path) -> None:
    """One process forks a child for each operation, in which the child dies by SIGKILL."""
    script = """
import os, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from litebert.checkpoint.faults import FaultyFS
from litebert.checkpoint.folder import load_model, save_model
from litebert.checkpoint.fs import use_fs
folder = Path(sys.argv[1])
old = load_model(folder)
new = load_model(folder)
with torch.no_grad():
    for parameter in new.parameters():
        parameter.add_(1)
def equal(a, b):
    a, b = a.state_dict(), b.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)
n, seen = 0, []
while True:
    n += 1
    child = os.fork()
    if child == 0:
        with use_fs(FaultyFS(n, fault="kill")):
            save_model(new, folder, card=str(n))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        break
    assert os.WTERMSIG(status) == 9
    found = load_model(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    card = (folder / "README.md").read_text()
    assert (equal(found, old), card) == (True, "old") or (equal(found, new), card) == (True, str(n))
    seen.append(card != "old")
    if seen[-1]:
        save_model(old, folder, card="old")
assert seen == sorted(seen) and seen[0] is False and seen[-1] is True
save_model(old, folder)
print(len(seen), sorted(os.listdir(folder.parent)))
"""
    save_model(load_model(small), small, card="old")
    done = subprocess.run(
        [sys.executable, "-c", script, str(small)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    count, _, left = done.stdout.partition(" ")
    assert int(count) >= 12
    assert left.strip() == "['saved']"  # leftovers of the killed are gone


def test_leftovers_of_running_saves_stay(saved: Path, make_model: Make) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mine, gone, ancient, other, odd = (
        saved.parent / f".saved.tmp-{name}"
        for name in (f"{os.getpid()}-ab", f"{dead.pid}-ab", "1-ab", "1-cd", "x")
    )
    beside = saved.parent / f".saved2.tmp-{dead.pid}-ab"
    for folder in (mine, gone, ancient, other, odd, beside):
        folder.mkdir()
    two_days_ago = time.time() - 2 * 86_400
    os.utime(ancient, (two_days_ago, two_days_ago))
    save_model(make_model(), saved)
    assert [path.exists() for path in (mine, gone, ancient, other, odd, beside)] == [
        True, False, False, True, True, True,
    ]  # fmt: skip
