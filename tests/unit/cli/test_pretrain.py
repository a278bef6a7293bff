"""`litebert pretrain`: what is refused before anything is read or written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litebert.cli import app
from litebert.train.ranks import Ranks


def test_several_processes_must_be_told_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def two_ranks(timeout_seconds: float) -> Iterator[Ranks]:
        yield Ranks(1, 2)

    monkeypatch.setattr("litebert.train.ranks.join_ranks", two_ranks)
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "run.toml"
    config.write_text('[data]\nshards = "none"\n')
    result = CliRunner().invoke(app, ["pretrain", str(config)])
    assert result.exit_code == 2
    assert "give --out DIR" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]
