"""Every command and every Python block of README and tutorials runs, in the order they are shown."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
SETUP = re.compile(r"^(make |pip install |git clone |source )")
SMALL = (
    " --epochs 1 --seeds 1 --set model.vocab_size=200 --set train.threads=1 --set train.guard.enabled=false"
    " --set model.config.hidden_size=32 --set model.config.num_attention_heads=2"
)
"""Added to `litebert train DATA`, so that the page is run in seconds."""
QUICK = " --epochs 1 --seeds 1 --set train.threads=1 --set train.guard.enabled=false"
"""Added to `litebert train ... --model my-encoder`."""
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it is shown as, and its text."""

    language: str
    name: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*groups) for groups in FENCE.findall(page.read_text("utf-8"))]


def commands(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    lines = (re.sub(r"\s+# .*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line and not line.startswith("#") and not SETUP.match(line)]


@pytest.fixture
def place(tmp_path: Path, encoders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that pages speak of, and `litebert` on the path."""
    monkeypatch.setenv("LITEBERT_MODELS", str(encoders))
    rows = [f"the {thing} {what},{label}" for thing in ("kettle", "lamp", "radio", "chair", "book")
            for what, label in (("works well", "good"), ("came broken", "bad"),
                                ("is a joy to use", "good"), ("stopped at once", "bad"))]  # fmt: skip
    table = "text,label\n" + "\n".join(rows * 2) + "\n"
    for name in ("reviews.csv", "new.csv", "held-out.csv"):
        (tmp_path / name).write_text(table)
    (tmp_path / "lines.txt").write_text("works well\nnever again\n")
    for block in blocks(ROOT / "docs" / "tutorials" / "pretrain-your-own.md"):
        if block.name.startswith(("lighthouse", "small")):
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
    write_records(tmp_path)
    programs = tmp_path / ".programs"
    programs.mkdir()
    program = programs / "litebert"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m litebert "$@"\n')
    program.chmod(0o755)
    return tmp_path


def write_records(place: Path) -> None:
    """The files of the tasks over records, small and original."""
    sentences = (
        f"Mira B-PER\nlives O\nin O\nUlm{n} B-LOC\n\nrain O\nfell{n} O\n" for n in range(20)
    )
    (place / "names.conll").write_text("\n".join(sentences))
    text = "The lake lies north of the mill. In winter the lake freezes."
    asked = [
        ("Where is the lake?", "north of the mill"),
        ("What freezes?", "the lake"),
        ("Who?", ""),
    ]
    articles = [
        {"title": f"Lake {n}", "paragraphs": [{"context": text, "qas": [
            {"id": f"{n}-{k}", "question": question, "is_impossible": not answer,
             "answers": [{"text": answer, "answer_start": text.index(answer)}] if answer else []}
            for k, (question, answer) in enumerate(asked)]}]}
        for n in range(8)
    ]  # fmt: skip
    (place / "train-v2.0.json").write_text(json.dumps({"version": "v2.0", "data": articles}))
    for part in ("train", "dev"):
        for n in range(6):
            passage = {"article": text, "id": f"middle{n}.txt", "answers": ["A"],
                       "questions": ["Where is the lake?"], "options": [["north", "south", "far", "gone"]]}  # fmt: skip
            folder = place / "race" / part / "middle"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{n}.txt").write_text(json.dumps(passage))
    rows = [f"a kettle sings {n},a pot sings {n},{n % 5}" for n in range(30)]
    (place / "pairs.csv").write_text("sentence1,sentence2,score\n" + "\n".join(rows) + "\n")
    (place / "texts.csv").write_text("text\n" + "".join(f"a kettle sings {n}\n" for n in range(9)))
    head = "sentence\tlabel\n"
    tsv = "".join(f"the lamp works {n}\t1\nthe lamp broke {n}\t0\n" for n in range(12))
    (place / "glue" / "SST-2").mkdir(parents=True)
    for part in ("train", "dev"):
        (place / "glue" / "SST-2" / f"{part}.tsv").write_text(head + tsv)


@pytest.mark.skipif(shutil.which("bash") is None, reason="the pages show bash")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_everything_on_the_page_runs(page: Path, place: Path) -> None:
    ran = 0
    for block in blocks(page):
        if block.name:
            (place / block.name).write_text(block.text, encoding="utf-8")
        elif block.language in ("sh", "bash"):
            for command in commands(block.text):
                run_command(command, place)
                ran += 1
        elif block.language == "python":
            run([sys.executable, "-c", block.text], place, block.text)
            ran += 1
    assert ran > 3


def run_command(command: str, place: Path) -> None:
    is_training = re.match(r"litebert train \S+\.csv", command) and "--dry-run" not in command
    accepted = {0, 1} if command.startswith(("litebert data check", "litebert doctor")) else {0}
    more = QUICK if "--model my-encoder" in command else SMALL if is_training else ""
    run(["bash", "-c", command + more], place, command, accepted)


def run(argv: list[str], place: Path, shown: str, accepted: set[int] | None = None) -> None:
    import os

    path = f"{place / '.programs'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        argv,
        cwd=place,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (accepted or {0}), f"{shown}\n{done.stderr}"
    assert "Traceback" not in done.stderr, f"{shown}\n{done.stderr}"


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs").rglob("*.md"))], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    broken = [target for target in targets if not (page.parent / target).exists()]
    assert not [name for name in broken if not name.startswith(("results/", "docs/results/"))]


def test_options_that_pages_name_exist() -> None:
    from typer.testing import CliRunner

    from litebert.cli import app

    runner = CliRunner()
    helps = {
        name: runner.invoke(app, [*name.split(), "--help"]).stdout
        for name in (
            "train",
            "vocab",
            "prepare",
            "pretrain",
            "predict",
            "evaluate",
            "info",
            "doctor",
            "data check",
            "quickstart",
        )
    }
    for page in PAGES:
        for name, line in re.findall(r"litebert (train|vocab|prepare|pretrain|predict|evaluate|data check)\b([^`\n]*)",
                                     page.read_text("utf-8")):  # fmt: skip
            for option in re.findall(r"(?<!\S)--[a-z-]+", line.split("#")[0]):
                assert option in helps[name], f"{page.name}: litebert {name} {option}"
