from __future__ import annotations

import errno
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import litebert.checkpoint.lock as lock_module
from litebert.checkpoint.fs import StorageError
from litebert.checkpoint.lock import Owner, RunLock
from litebert.checkpoint.state import StateStore
from litebert.errors import CheckpointError

HOLD = """
import sys, time
from pathlib import Path
import litebert.checkpoint.lock as lock
if sys.argv[2] == "file": lock.fcntl = None
with lock.RunLock(Path(sys.argv[1])):
    print("held", flush=True); time.sleep(60)
"""


@pytest.fixture(params=["flock", "file"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "file":
        monkeypatch.setattr(lock_module, "fcntl", None)
    return request.param


def test_the_second_process_is_refused_with_pid_and_host(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run" / "run.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), kind], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        words = f"process {holder.pid} on {socket.gethostname()}"
        with pytest.raises(CheckpointError, match=words), RunLock(path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with RunLock(path):  # a killed process leaves nothing that blocks
            pass
    finally:
        holder.kill()
        holder.communicate()


def test_lock_is_released_and_can_be_taken_again(tmp_path: Path, kind: str) -> None:
    lock = RunLock(tmp_path / "run.lock")
    for _ in range(2):
        with lock:
            owner = lock.owner()
            assert owner is not None and owner.pid == os.getpid()
            with pytest.raises(CheckpointError, match="in use by process"), RunLock(lock.path):
                pass
        assert lock.owner() is None
    lock.__exit__(None, None, None)


def test_stale_means_dead_process_or_other_boot() -> None:
    here, boot = socket.gethostname(), lock_module._boot_id()
    assert Owner(os.getpid(), here, boot).is_alive()
    assert not Owner(os.getpid(), here, "another boot").is_alive()
    assert not Owner(2**22 + 1, here, boot).is_alive()
    assert Owner(1, here, boot).is_alive()
    assert Owner(1, "elsewhere", "").is_alive()


def test_lock_file_of_another_machine(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "run.lock"
    path.write_text(json.dumps({"pid": 5, "host": "elsewhere", "boot_id": "x"}))
    if kind == "file":
        with pytest.raises(CheckpointError, match="process 5 on elsewhere"), RunLock(path):
            pass
    else:
        with caplog.at_level(logging.WARNING), RunLock(path):
            assert "process 5 on elsewhere" in caplog.text


def test_without_flock_on_this_file_system_the_file_itself_is_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(lock_module.fcntl, "flock", refuse)
    path = tmp_path / "run.lock"
    with RunLock(path):
        assert path.exists()
        with pytest.raises(CheckpointError, match="in use"), RunLock(path):
            pass
    assert not path.exists()


def test_other_lock_failures_are_storage_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(lock_module.fcntl, "flock", refuse)
    with pytest.raises(StorageError, match="cannot lock"), RunLock(tmp_path / "run.lock"):
        pass


def test_garbage_in_the_lock_file_is_no_owner(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_bytes(b"\xff{")
    lock = StateStore(tmp_path / "checkpoints").lock()
    assert lock.path == tmp_path / "run.lock"
    assert lock.owner() is None
    with lock:
        pass
