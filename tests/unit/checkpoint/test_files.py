from __future__ import annotations

import os
from pathlib import Path

import pytest

from litebert.checkpoint.files import check_folder, is_plain_name
from litebert.errors import CheckpointError


def test_check_folder_says_what_stands_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    check_folder(tmp_path)
    for name, found in (("file", "a file"), ("none", "nothing"), ("\0", "null|nothing")):
        with pytest.raises(CheckpointError, match=found):
            check_folder(tmp_path / name)


def test_a_folder_that_may_not_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CheckpointError, match="Permission denied"):
        check_folder(tmp_path)


@pytest.mark.parametrize("name", ["a", "model-00001-of-00002.safetensors", "..a", "ä b"])
def test_plain_names(name: str) -> None:
    assert is_plain_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/a", "../a", "a\\b", "C:a", "a\0", "a\n", "x" * 256]
)
def test_names_that_are_more_than_a_name(name: str) -> None:
    assert not is_plain_name(name)
