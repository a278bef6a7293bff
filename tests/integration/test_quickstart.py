"""The quickstart with and without an encoder in the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.named_encoders import NAME, make_student, named_encoders
from typer.testing import CliRunner

from litebert.cli import app

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_rows_are_simple_answers_scratch_and_pretrained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_student(tmp_path / "encoders" / NAME)
    with named_encoders(tmp_path / "encoders", monkeypatch):
        done = CliRunner().invoke(app, ["quickstart", "--out", "run", "--seconds", "0.5"])
    assert done.exit_code == 0, f"{done.output}\n{done.exception}"
    table = done.stdout.split("on the same held-out messages\n")[1].split("\n\n")[0]
    rows = [line.rsplit(maxsplit=1) for line in table.splitlines()]
    assert [label.strip() for label, _ in rows] == ["majority", "tfidf", "from scratch", NAME]
    assert all(0 <= float(value) <= 1 for _, value in rows)
    assert "three new messages" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["encoders", "run"]
