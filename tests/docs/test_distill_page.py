"""The first commands of the page on distillation run; its settings files are complete and known."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from tests.bert_folders import WORDS, make_bert
from typer.testing import CliRunner

from litebert.cli import app
from litebert.recipes.distill.settings import DistillRun

pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "distill.md").read_text("utf-8")
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
BLOCKS = FENCE.findall(PAGE)
SMALL = {
    "litebert prepare": " -j 1",
    "litebert distill": " --set train.max_steps=3 --set train.threads=1 --set data.max_length=24"
    " --set train.batch_size=8 --set data.eval_examples=16",
}


def test_the_first_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_bert(tmp_path / "TEACHER")
    words = [word for word in WORDS if word.isalpha()]
    (tmp_path / "books").mkdir()
    for book in range(8):
        text = " ".join(
            f"{words[(book + 3 * n * n) % len(words)]}{'.' if n % 7 == 6 else ''}"
            for n in range(140)
        )
        (tmp_path / "books" / f"book-{book}.txt").write_text(text + ".\n", "utf-8")
    (tmp_path / "texts.csv").write_text("text\nthe kettle is fine\n", "utf-8")
    for language, name, text in BLOCKS:
        if language == "toml":
            (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    lines = next(text for language, _, text in BLOCKS if language == "text").splitlines()
    assert [line.split()[1] for line in lines] == ["prepare", "fold", "distill", "embed"]
    for line in lines:
        line = line.replace("--embedding-size 128", "--embedding-size 8").replace("0.01", "0.2")
        line = line.replace(" --time-budget 2h", "")
        line += next((extra for start, extra in SMALL.items() if line.startswith(start)), "")
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
    assert (tmp_path / "vectors.npy").exists()


@pytest.mark.parametrize("text", [text for language, _, text in BLOCKS if language == "toml"])
def test_settings_files_are_known(text: str) -> None:
    assert DistillRun.model_validate(tomllib.loads(text)).student.source == "start"


def test_shipped_settings_are_known() -> None:
    for path in (ROOT / "configs" / "distill").glob("*.toml"):
        DistillRun.model_validate(tomllib.loads(path.read_text("utf-8")))
