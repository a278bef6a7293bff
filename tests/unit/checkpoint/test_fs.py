from __future__ import annotations

import errno
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

import litebert.checkpoint.fs as fs_module
from litebert.checkpoint.faults import FaultyFS
from litebert.checkpoint.fs import FS, StorageError, replace_folder_atomic, use_fs, write_atomic
from litebert.errors import CheckpointError


def fill(folder: Path, text: str) -> Path:
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(text)
    return folder


def test_write_file_returns_size_and_hash_of_whole_and_chunked_data(tmp_path: Path) -> None:
    content = b"abc" * 1000
    whole = FS().write_file(tmp_path / "whole", content)
    parts = FS().write_file(tmp_path / "parts", (content[i : i + 7] for i in range(0, 3000, 7)))
    assert whole == parts
    assert (whole.size, whole.sha256) == (3000, hashlib.sha256(content).hexdigest())
    assert (tmp_path / "parts").read_bytes() == content


def test_write_atomic_keeps_the_old_file_whatever_operation_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")
    recording = FaultyFS()
    recording.write_atomic(path, b"old")
    names = [name for name, _ in recording.operations]
    assert names == ["open", "write", "fsync", "rename", "fsync_folder"]
    for n, name in enumerate(names, 1):
        for fault in ("error", "short_write"):
            with use_fs(FaultyFS(n, fault=fault)), pytest.raises(StorageError) as caught:
                write_atomic(path, b"new!")
            assert caught.value.is_disk_full
            assert caught.value.exit_code == 74
            expected = b"new!" if name == "fsync_folder" else b"old"
            assert path.read_bytes() == expected
            assert [p.name for p in tmp_path.iterdir()] == ["file"], "left-over temporary file"
        write_atomic(path, b"old")


@pytest.mark.parametrize("can_swap", [True, False])
def test_replace_folder_is_old_or_new_at_every_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_swap: bool
) -> None:
    if not can_swap:
        monkeypatch.setattr(fs_module, "_exchange", lambda first, second: False)
    n = 0
    while True:
        n += 1
        root = tmp_path / str(n)
        root.mkdir()
        final, temporary = fill(root / "final", "old"), fill(root / ".tmp", "new")
        shim = FaultyFS(n)
        try:
            with use_fs(shim):
                replace_folder_atomic(temporary, final)
        except CheckpointError:
            assert {(final / "a").read_text(), (final / "b").read_text()} in ({"old"}, {"new"})
        else:
            break
    assert n > 5
    assert (final / "a").read_text() == "new"
    assert [p.name for p in root.iterdir()] == ["final"]


def test_replace_folder_survives_a_kill_at_every_operation(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from litebert.checkpoint.faults import FaultyFS\n"
        "root = Path(sys.argv[1]); n = int(sys.argv[2])\n"
        "FaultyFS(n, fault='kill').replace_folder_atomic(root / '.tmp', root / 'final')\n"
    )
    for n in range(1, 20):
        root = tmp_path / str(n)
        root.mkdir()
        final = fill(root / "final", "old")
        fill(root / ".tmp", "new")
        done = subprocess.run([sys.executable, "-c", script, str(root), str(n)], check=False)
        assert {(final / "a").read_text(), (final / "b").read_text()} in ({"old"}, {"new"})
        if done.returncode == 0:
            break
        assert done.returncode == -9
    assert done.returncode == 0 and n > 3


def test_new_folder_is_put_in_place(tmp_path: Path) -> None:
    replace_folder_atomic(fill(tmp_path / ".tmp", "new"), tmp_path / "final")
    assert [p.name for p in tmp_path.iterdir()] == ["final"]


def test_free_space_check_names_the_bytes_needed(tmp_path: Path) -> None:
    shim = FaultyFS(free_bytes=10)
    shim.check_free_space(tmp_path, 10)
    with pytest.raises(StorageError, match="11 are needed") as caught:
        shim.check_free_space(tmp_path / "not" / "yet", 11)
    assert caught.value.needed_bytes == 11
    assert FS().free_bytes(tmp_path / "not" / "yet") > 0


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EROFS, "not permitted"),
        (errno.EACCES, "not permitted"),
        (errno.EIO, "check the disk"),
        (errno.EDQUOT, "full"),
    ],
)
def test_refusals_say_what_to_do(tmp_path: Path, number: int, words: str) -> None:
    with pytest.raises(StorageError, match=words) as caught:
        FaultyFS(1, number=number).write_file(tmp_path / "x", b"data")
    assert caught.value.errno == number


def test_remove_tree_does_not_follow_links(tmp_path: Path) -> None:
    kept = fill(tmp_path / "kept", "x")
    folder = fill(tmp_path / "folder", "x")
    (folder / "link").symlink_to(kept)
    FS().remove_tree(folder)
    FS().remove_tree(folder)
    assert not folder.exists() and (kept / "a").exists()


def test_make_folder_where_a_file_stands(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError):
        FS().make_folder(tmp_path / "file")
    FS().make_folder(tmp_path / "a" / "b")
    FS().make_folder(tmp_path / "a" / "b")
    FS().fsync_folder(tmp_path / "a")


def test_two_names_that_cannot_be_swapped_are_reported(tmp_path: Path) -> None:
    if not sys.platform.startswith(("linux", "darwin")):
        pytest.skip("this system cannot swap names")
    (tmp_path / "here").mkdir()
    with pytest.raises(FileNotFoundError):
        fs_module._exchange(tmp_path / "here", tmp_path / "nowhere")
