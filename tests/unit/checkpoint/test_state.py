from __future__ import annotations

import json
import logging
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import litebert.checkpoint.state as state_module
from litebert.checkpoint.faults import FaultyFS, PowerCut, PowerCutFS
from litebert.checkpoint.fs import FS, StorageError, fsync_folder, use_fs
from litebert.checkpoint.rng import capture_rng, restore_rng
from litebert.checkpoint.state import SavedState, StateStore
from litebert.checkpoint.tensor_file import DTYPE_NAMES, tensor_chunks
from litebert.errors import CheckpointError


def content(step: int) -> tuple[dict[str, Tensor], dict[str, object]]:
    tensors = {"weight": torch.full((3, 5), float(step)), "step": torch.tensor(step)}
    return tensors, {"step": step, "loss": 0.1 * step, "name": "ä"}


def save(store: StateStore, *steps: int, **options: object) -> None:
    for step in steps:
        store.save(step, *content(step), **options)  # type: ignore[arg-type]


def check(state: SavedState | None, *allowed: int) -> None:
    assert state is not None
    assert state.step in allowed
    tensors, scalars = content(state.step)
    assert state.scalars == scalars
    assert state.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(state.tensors[name], tensor)


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore(tmp_path / "checkpoints")


def test_save_and_load(store: StateStore) -> None:
    assert store.load_latest() is None
    save(store, 3, 12)
    check(store.load_latest(), 12)
    check(store.load(3), 3)
    assert sorted(p.name for p in store.folder.iterdir()) == ["step-00000003", "step-00000012"]


def test_no_pickle_and_a_manifest_that_tells_everything(store: StateStore) -> None:
    tensors, scalars = content(7)
    folder = store.save(7, tensors, scalars, about={"epoch": 1, "config_sha256": "ab"})
    assert {p.name for p in folder.iterdir()} == {
        "manifest.json",
        "scalars.json",
        "tensors.safetensors",
    }
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format_version"] == 1
    assert manifest["step"] == 7
    assert manifest["torch_version"] == torch.__version__
    assert manifest["about"] == {"epoch": 1, "config_sha256": "ab"}
    assert set(manifest["files"]) == {"tensors.safetensors", "scalars.json"}
    assert load_file(folder / "tensors.safetensors").keys() == tensors.keys()


def test_the_manifest_is_written_last_and_everything_is_synced(store: StateStore) -> None:
    store.folder.mkdir()
    with use_fs(FaultyFS()) as shim:
        save(store, 1)
    assert [(name, path.name) for name, path in shim.operations if name != "write"][2:] == [
        ("open", "tensors.safetensors"),
        ("fsync", "tensors.safetensors"),
        ("open", "scalars.json"),
        ("fsync", "scalars.json"),
        ("open", "manifest.json"),
        ("fsync", "manifest.json"),
        ("fsync_folder", shim.operations[0][1].name),
        ("rename", "step-00000001"),
        ("fsync_folder", "checkpoints"),
    ]


def test_keeps_the_newest_and_the_protected(store: StateStore) -> None:
    save(store, 1, 2, 3, protect=[1])
    assert store.steps() == [1, 2, 3]
    save(store, 4, 5, protect=[1])
    assert store.steps() == [1, 4, 5]
    save(store, 6, keep=3)
    assert store.steps() == [4, 5, 6]


def test_keeping_one_is_refused(store: StateStore) -> None:
    with pytest.raises(CheckpointError, match="at least 2"):
        save(store, 1, keep=1)


def test_nothing_is_purged_when_the_new_state_does_not_verify(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(store, 1, 2)

    def fail(folder: Path) -> None:
        raise CheckpointError("bad disk", path=folder)

    monkeypatch.setattr(state_module, "_verify", fail)
    with pytest.raises(CheckpointError, match="bad disk"):
        save(store, 3)
    assert store.steps() == [1, 2, 3]


def test_same_step_again_replaces(store: StateStore) -> None:
    save(store, 5)
    tensors, scalars = content(5)
    store.save(5, tensors, scalars | {"name": "second"})
    assert store.load(5).scalars["name"] == "second"
    assert [p.name for p in store.folder.iterdir()] == ["step-00000005"]


def test_failure_at_every_operation_leaves_a_valid_state(store: StateStore) -> None:
    """A full disk at any operation, with or without a short write."""
    for fault in ("error", "short_write"):
        for n in range(1, 100):
            save(store, 1, 2)
            try:
                with use_fs(FaultyFS(n, fault=fault)) as shim:  # type: ignore[arg-type]
                    save(store, 3)
            except StorageError as error:
                assert error.is_disk_full
            check(store.load_latest(), 2, 3)
            store.discard_after(0)
            if len(shim.operations) < n:
                break
        assert n > 12
        assert not list(store.folder.glob(".tmp-*"))


def test_disk_that_stays_full_keeps_the_old_state_and_says_how_much_is_needed(
    store: StateStore,
) -> None:
    save(store, 1)
    with (
        use_fs(FaultyFS(1, only="write", times=1000)),
        pytest.raises(StorageError, match="bytes free") as caught,
    ):
        save(store, 2)
    assert caught.value.needed_bytes is not None
    assert caught.value.needed_bytes > 2 * 68
    check(store.load_latest(), 1)
    save(store, 2)
    check(store.load_latest(), 2)


def test_too_little_space_is_noticed_before_writing(store: StateStore) -> None:
    save(store, 1)
    with use_fs(FaultyFS(free_bytes=200)) as shim, pytest.raises(StorageError, match="needed"):
        save(store, 2)
    assert shim.operations == []


@pytest.mark.parametrize("lose_renames", [True, False])
def test_power_cut_at_every_operation(store: StateStore, lose_renames: bool) -> None:
    for n in range(1, 100):
        save(store, 1, 2)
        shim = PowerCutFS(n, lose_renames=lose_renames)
        is_saved = False
        try:
            with use_fs(shim):
                save(store, 3)
                is_saved = True
                fsync_folder(store.folder.parent)  # one more chance to cut, after the save
        except PowerCut:
            is_saved = is_saved or shim.operations[n - 1][0] in ("unlink", "rmdir")
            check(store.load_latest(), *((3,) if is_saved else (2, 3)))
            assert 2 in store.steps()
        else:
            break
        store.discard_after(0)
    assert n > 12
    check(store.load_latest(), 3)


KILL_SCRIPT = """
import sys
from pathlib import Path
import torch
from litebert.checkpoint.faults import FaultyFS
from litebert.checkpoint.fs import use_fs
from litebert.checkpoint.state import StateStore

def save(store, step):
    tensors = {"weight": torch.full((3, 5), float(step)), "step": torch.tensor(step)}
    store.save(step, tensors, {"step": step, "loss": 0.1 * step, "name": "\\u00e4"})

import os
root = Path(sys.argv[1])
for n in range(1, 100):
    pid = os.fork()
    if pid == 0:  # a real process that dies by a real SIGKILL inside its n-th operation
        store = StateStore(root / str(n) / "checkpoints")
        save(store, 1); save(store, 2)
        with use_fs(FaultyFS(n, fault="kill")):
            save(store, 3)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status):
        print(n, os.WEXITSTATUS(status)); break
"""


@pytest.mark.slow
def test_kill_at_every_operation(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILL_SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    last, code = map(int, done.stdout.split())
    assert code == 0 and last > 12
    for n in range(1, last + 1):
        store = StateStore(tmp_path / str(n) / "checkpoints")
        check(store.load_latest(), *((3,) if n == last else (2, 3)))
        save(store, 4)
        check(store.load_latest(), 4)
        assert not list(store.folder.glob(".tmp-*")), "left-over of the killed process"


def test_bit_flips_and_truncations_fall_back_with_one_warning(
    store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(1)
    for name in ("tensors.safetensors", "scalars.json", "manifest.json"):
        for kind in ("flip", "flip", "flip", "truncate", "delete", "grow"):
            save(store, 1, 2)
            path = store.folder / "step-00000002" / name
            raw = bytearray(path.read_bytes())
            if kind == "flip":
                raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
                path.write_bytes(raw)
            elif kind == "delete":
                path.unlink()
            else:
                path.write_bytes(raw[:-1] if kind == "truncate" else raw + b" ")
            caplog.clear()
            if (name, kind) == ("manifest.json", "grow"):
                check(store.load_latest(), 2)  # white space after JSON changes nothing
                continue
            with caplog.at_level(logging.WARNING):
                check(store.load_latest(), 1)
            assert len(caplog.records) == 1
            assert "going back to step 1" in caplog.text
            assert store.steps() == [1]
    assert len(list((store.folder / ".quarantine").iterdir())) == 17, "nothing is ever deleted"


def test_every_state_broken_is_an_error_not_a_fresh_start(store: StateStore) -> None:
    save(store, 1, 2)
    for path in store.folder.glob("step-*/scalars.json"):
        path.write_text("{}")
    with pytest.raises(CheckpointError, match="none of the 2"):
        store.load_latest()
    assert store.steps() == []


def test_quarantine_that_cannot_be_made_is_only_reported(
    store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    save(store, 1, 2)
    (store.folder / "step-00000002" / "scalars.json").write_text("{}")
    with use_fs(FaultyFS(1, times=99)), caplog.at_level(logging.WARNING):
        check(store.load_latest(), 1)
    assert "quarantine" in caplog.text


def test_purge_that_fails_is_only_reported(
    store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    save(store, 1, 2)
    with use_fs(FaultyFS(1, only="unlink", times=99)), caplog.at_level(logging.WARNING):
        save(store, 3)
    assert "could not delete" in caplog.text
    check(store.load_latest(), 3)


def test_a_newer_format_is_refused_with_its_version(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(store, 1)
    monkeypatch.setattr(state_module, "FORMAT_VERSION", 9)
    save(store, 2)
    monkeypatch.setattr(state_module, "FORMAT_VERSION", 1)
    with pytest.raises(CheckpointError, match="format 9, this litebert reads up to 1"):
        store.load_latest()
    assert store.steps() == [1, 2]


def test_a_state_under_another_name_is_refused(store: StateStore) -> None:
    save(store, 1)
    (store.folder / "step-00000001").rename(store.folder / "step-00000008")
    with pytest.raises(CheckpointError, match="holds the state of step 1"):
        store.load(8)
    with pytest.raises(CheckpointError, match="no state of step 4"):
        store.load(4)


def test_valid_checksums_over_unreadable_tensors(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "tensor_chunks", lambda tensors: b"not safetensors")
    save(store, 1)
    with pytest.raises(CheckpointError, match="cannot be read"):
        store.load(1)


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": object()}])
def test_scalars_must_be_strict_json(store: StateStore, bad: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match="strict JSON"):
        store.save(1, {}, bad)


def test_tensor_chunks_equal_the_library(tmp_path: Path) -> None:
    tensors = {
        f"{dtype}.{shape}": torch.arange(np.prod(shape, dtype=int)).reshape(shape).to(dtype)
        for dtype in DTYPE_NAMES
        for shape in ((), (0, 3), (2, 3), (7,))
    }
    tensors["view"] = torch.arange(12.0).reshape(3, 4).T
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"".join(tensor_chunks(tensors, {"format": "pt"})))
    loaded = load_file(path)
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor)
    reordered = dict(reversed(tensors.items()))
    assert path.read_bytes() == b"".join(tensor_chunks(reordered, {"format": "pt"}))


def test_complex_tensors_are_refused() -> None:
    with pytest.raises(CheckpointError, match="complex64"):
        list(tensor_chunks({"x": torch.zeros(1, dtype=torch.complex64)}))


def test_random_states_survive_a_round_trip(store: StateStore) -> None:
    random.seed(3)
    np.random.seed(4)
    torch.manual_seed(5)
    random.gauss(0, 1)
    np.random.standard_normal()
    tensors, scalars = capture_rng()
    store.save(1, tensors, scalars)

    def draw() -> list[float]:
        numbers = [random.gauss(0, 1), random.random(), float(np.random.standard_normal())]
        return [*numbers, float(np.random.rand()), float(torch.rand(1))]

    expected = draw()
    draw()
    loaded = store.load(1)
    restore_rng(loaded.tensors, loaded.scalars)
    assert draw() == expected
    with pytest.raises(CheckpointError, match="random number states"):
        restore_rng({}, {})


def test_a_reader_beside_a_writer_never_sees_a_part(store: StateStore) -> None:
    """Loading while states come and go."""
    save(store, 1, 2)
    done = threading.Event()

    def write() -> None:
        for step in range(3, 40):
            save(store, step)
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        step = store.steps()[-1]
        try:
            state = store.load(step)
        except CheckpointError:
            assert store.steps()[-1] > step, "only a state that is being deleted may be missing"
            continue
        check(state, step)
    writer.join()


def test_a_state_that_goes_while_it_is_read_is_a_checkpoint_error(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(store, 1, 2)

    def gone(path: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr("litebert.checkpoint.state.load_file", gone)
    with pytest.raises(CheckpointError, match=r"cannot be read: .*No such file"):
        store.load(2)


def test_a_manifest_that_was_edited_is_refused(store: StateStore) -> None:
    save(store, 1)
    path = store.folder / "step-00000001" / "manifest.json"
    path.write_text(path.read_text().replace('"step": 1', '"step": 7'))
    with pytest.raises(CheckpointError, match="does not match its own checksum"):
        store.load(1)


def test_a_refusal_that_is_no_full_disk_is_passed_on(store: StateStore) -> None:
    save(store, 1)

    class Broken(FS):
        def rename(self, source: Path, target: Path) -> None:
            raise StorageError("Input/output error", path=target, errno=5)

    with use_fs(Broken()), pytest.raises(StorageError, match="Input/output error"):
        save(store, 2)
    check(store.load_latest(), 1)
