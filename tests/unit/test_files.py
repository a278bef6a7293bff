from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from litebert import files
from litebert.errors import CheckpointError
from litebert.files import check_file, open_file, read_bytes, read_json


def test_a_regular_file_is_measured_and_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert check_file(path) == 5
    assert read_bytes(path, max_bytes=5) == b"12345"
    assert check_file(tmp_path / "none") is None


def test_a_missing_file_is_an_error_where_it_is_needed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="missing"):
        open_file(tmp_path / "none")


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CheckpointError, match=r"allowed are 50"):
        read_bytes(path, max_bytes=50)


def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="is a pipe"):
        open_file(tmp_path / "pipe")


def test_a_pipe_that_takes_the_place_of_a_checked_file_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(files, "check_file", lambda path, **limits: 7)
    with pytest.raises(CheckpointError, match="empty"):
        read_bytes(tmp_path / "pipe", max_bytes=9)


def test_sockets_folders_and_devices_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
        for name in ("folder", "socket"):
            with pytest.raises(CheckpointError, match=f"is a {name}"):
                check_file(tmp_path / name)
    with pytest.raises(CheckpointError, match="is a device"):
        check_file(Path("/dev/zero"))


def test_a_link_is_followed_inside_the_folder_only(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.write_bytes(b"secret")
    folder.mkdir()
    (folder / "real").write_bytes(b"fine")
    (folder / "inner").symlink_to("real")
    (folder / "outer").symlink_to(outside)
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    assert read_bytes(folder / "inner", max_bytes=9) == b"fine"
    assert check_file(folder / "dangling") is None
    with pytest.raises(CheckpointError, match="outside of the model folder"):
        read_bytes(folder / "outer", max_bytes=9)
    with pytest.raises(CheckpointError, match="loop"):
        read_bytes(folder / "loop", max_bytes=9)


def test_the_links_of_a_download_cache_are_followed(tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "snapshots" / "abc", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "1").write_bytes(b"fine")
    (snapshot / "file").symlink_to("../../blobs/1")
    assert read_bytes(snapshot / "file", max_bytes=9) == b"fine"


def test_a_file_that_may_not_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")

    def refuse(*arguments: object, **options: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CheckpointError, match="Permission denied"):
        open_file(path)
    monkeypatch.setattr(Path, "lstat", refuse)
    with pytest.raises(CheckpointError, match="Permission denied"):
        check_file(path)


def test_a_file_that_fails_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")

    def broken(*arguments: object) -> os.stat_result:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", broken)
        with pytest.raises(CheckpointError, match="Input/output error"):
            read_bytes(path, max_bytes=9)
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="empty"):
        read_bytes(path, max_bytes=9)


def test_a_file_that_grows_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    before = path.stat()
    path.write_bytes(b"abcdef")
    monkeypatch.setattr(os, "fstat", lambda descriptor: before)
    with pytest.raises(CheckpointError, match="changed while"):
        read_bytes(path, max_bytes=9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "not valid JSON"),
        (b"[" * 200_000, "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"9" * 6000, "not valid JSON"),
        (b"[1]", "holds a JSON list"),
        (b"null", "holds a JSON NoneType"),
    ],
)
def test_json_faults_are_named(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(text)
    with pytest.raises(CheckpointError, match=message):
        read_json(path, max_bytes=1 << 20)
