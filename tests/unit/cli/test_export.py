"""`litebert export`: the command, its words and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litebert.cli import app

pytest.importorskip("onnx")


def run(*words: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, ["export", *words])
    return found.exit_code, found.stdout, found.stderr


def test_a_table_or_json_of_what_was_compared(model_dir: Path, tmp_path: Path) -> None:
    code, shown, said = run("onnx", str(model_dir), "--out", str(tmp_path / "a"))
    assert code == 0 and "onnx/litebert_int8.onnx" in shown and said.count("checked") == 4
    words = ["--precision", "fp16", "--no-plain", "--json"]
    code, shown, _ = run("onnx", str(model_dir), "--out", str(tmp_path / "b"), *words)
    assert code == 0
    facts = json.loads(shown)
    assert list(facts["files"]) == ["onnx/litebert_fp16.onnx"] and facts["head"] == "sequence"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["onxx", "MODEL"], 2, "did you mean 'onnx'"),
        (["onnx", "MODEL", "--precision", "int9"], 2, "onnx writes fp32, fp16, int8"),
        (["onnx", "MODEL", "--precision", "fp32,fp32"], 2, "each once"),
        (["onnx", "MODEL", "--min-agreement", "2"], 2, "0 to 1"),
        (["onnx", "nowhere"], 66, "nowhere"),
    ],
)
def test_wrong_words(
    model_dir: Path, tmp_path: Path, words: list[str], code: int, said: str
) -> None:
    given = [str(model_dir) if word == "MODEL" else word for word in words]
    found, _, talk = run(*given, "--out", str(tmp_path / "out"))
    assert found == code and said in talk
    assert not (tmp_path / "out").exists()


def test_without_onnx_the_extra_is_named(
    model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import builtins

    real = builtins.__import__

    def refuse(name: str, *rest: object, **named: object) -> object:
        if name.startswith("litebert.export"):
            raise ModuleNotFoundError("No module named 'onnx'", name="onnx")
        return real(name, *rest, **named)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(builtins, "__import__", refuse)
    code, _, talk = run("onnx", str(model_dir), "--out", str(tmp_path / "out"))
    assert code == 2 and 'litebert[export]"' in talk
