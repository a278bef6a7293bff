"""`embed`, `search` and `fill` where no model is told, and what is said where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.named_encoders import NAME, make_student, named_encoders
from typer.testing import CliRunner, Result

from litebert.cli import app
from litebert.cli.default_model import model_and_rest
from litebert.errors import SettingsError

pytest.importorskip("onnx")


def run(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "lines.txt"
    path.write_text("the kettle is broken\na boat sails at night\n")
    return path


def test_the_first_word_may_be_the_data(
    encoders: Path, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with named_encoders(encoders, monkeypatch):
        rows = [
            [json.loads(line) for line in run(*arguments, text=lines.read_text()).stdout.splitlines()]
            for arguments in (
                ("embed",), ("embed", "-"), ("embed", NAME), ("embed", NAME, "-"),
                ("embed", lines), ("embed", NAME, lines), ("embed", encoders / NAME, lines),
            )
        ]  # fmt: skip
        assert all(len(found) == 2 for found in rows)
        for found in rows[1:]:
            assert found[0]["vector"] == pytest.approx(rows[0][0]["vector"], abs=1e-5)
        for arguments in (("search", lines, "a lamp"), ("search", NAME, lines, "a lamp")):
            done = run(*arguments, "--no-cache")
            assert done.exit_code == 0, done.output
            assert done.stdout.count("lines.txt:") == 2
        assert run("search", lines, "--queries", lines, "--no-cache").exit_code == 0


def test_fill_takes_a_text_and_perhaps_a_model(
    encoders: Path, lines: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with named_encoders(encoders, monkeypatch):
        done = run("fill", "the [MASK] is broken", "--top", 3)
        assert done.exit_code == 0, done.output
        assert len(done.stdout.splitlines()) == 3
        found = json.loads(run("fill", NAME, "a [MASK] and a [MASK]", "--json").stdout)
        assert [len(mask) for mask in found["masks"]] == [5, 5]
        assert "[MASK] 2" in run("fill", "a [MASK] and a [MASK]").stdout
        for arguments, message in (
            (("fill", "no mask"), "there is no [MASK]"),
            (("fill", "a", "b", "c [MASK]"), "put the text in quotes"),
            (("fill", "litebert-smal-en", "a [MASK]"), "did you mean 'litebert-small-en'"),
        ):
            done = run(*arguments)
            assert done.exit_code in (2, 66)
            assert message in " ".join(done.stderr.split())
    make_student(tmp_path / "words", head="mlm")
    assert run("fill", tmp_path / "words", "the [MASK] is broken").exit_code == 0


def test_without_an_encoder_the_model_must_be_told(lines: Path) -> None:
    for arguments in (("embed", lines), ("search", lines, "a lamp"), ("fill", "a [MASK]")):
        done = run(*arguments)
        assert done.exit_code == 2, done.output
        assert "does not hold the weights of litebert-small-en" in " ".join(done.stderr.split())


def test_another_folder_of_encoders_must_exist(tmp_path: Path) -> None:
    done = run("--models", tmp_path / "none", "doctor")
    assert done.exit_code == 2
    assert "does not exist" in done.stderr


def test_words_are_told_apart(encoders: Path, lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with named_encoders(encoders, monkeypatch):
        assert model_and_rest((None, None)) == (Path(NAME), (None,))
        assert model_and_rest(("model.onnx", None)) == (Path("model.onnx"), (None,))
        assert model_and_rest(("x\0" * 9000, None)) == (Path("x\0" * 9000), (None,))
        with pytest.raises(SettingsError, match="is a file and no model"):
            model_and_rest((str(lines), str(lines)))
    assert run("search").exit_code == 2
