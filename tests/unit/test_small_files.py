"""Small files are read whole; what is no regular file, or too large, is refused and never waited for."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from litebert.errors import CheckpointError, SettingsError
from litebert.model.config import AlbertConfig
from litebert.settings import read_toml
from litebert.small_files import read_small
from litebert.tasks.base import load_task


def test_a_file_within_its_bound_is_read_and_links_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    assert read_small(path, 5) == read_small(tmp_path / "link", 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes") as caught:
        read_small(path, 4)
    assert caught.value.errno == errno.EFBIG
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "none", 4)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        place = os.open(tmp_path, os.O_RDONLY)
        server.bind(
            f"/proc/self/fd/{place}/socket" if len(str(tmp_path)) > 80 else str(tmp_path / "socket")
        )
        os.close(place)
    found = {"pipe": "a pipe", "zero": "a device", "socket": "a socket", "": "a folder"}
    for name, kind in found.items():
        with pytest.raises(OSError, match=f"is {kind}, expected a regular file"):
            read_small(tmp_path / name, 100)


def test_every_reader_of_small_files_refuses_pipes_and_devices(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    os.mkfifo(tmp_path / "task.json")
    with pytest.raises(CheckpointError, match="is a pipe"):
        AlbertConfig.load(tmp_path)
    with pytest.raises(SettingsError, match="is a pipe"):
        read_toml(tmp_path / "config.json")
    with pytest.raises(CheckpointError, match="is a pipe"):
        load_task(tmp_path)
    (tmp_path / "task.json").unlink()
    (tmp_path / "task.json").symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="is a link to /dev/zero"):
        load_task(tmp_path)
