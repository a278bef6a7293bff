"""`litebert train` as a process, from a table to a run folder."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import litebert as package
from litebert.cli import app
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.settings import load_settings

from .conftest import SMALL, Litebert, Run

pytestmark = pytest.mark.slow

FILES = (
    "README.md", "command.txt", "config.toml", "data.json", "env.json", "log.txt",
    "predictions.jsonl", "report.html", "scores.json", "summary.json",
    "model-best/config.json", "model-best/model.safetensors", "model-best/spiece.model",
    "model-best/task.json", "model-best/tokenizer.json", "model-last/model.safetensors",
)  # fmt: skip


def train(*arguments: object) -> Result:
    """The command in this process, without a terminal."""
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def test_results_on_stdout_talk_on_stderr(finished: Run) -> None:
    assert "this model" in finished.stdout
    assert "majority" in finished.stdout
    assert "tfidf" in finished.stdout
    for word in ("text      review", "task      binary", "because", "baseline", "training"):
        assert word in finished.stderr
        assert word not in finished.stdout
    assert "Traceback" not in finished.stderr


def test_the_run_folder_is_whole(finished: Run, table: Path) -> None:
    for name in FILES:
        assert (finished.path / name).stat().st_size > 0, name
    assert not list(finished.path.glob("**/.*")), "nothing temporary is left"
    data = json.loads((finished.path / "data.json").read_text("utf-8"))
    assert [part["role"] for part in data["parts"]] == ["train", "eval"]
    assert sum(part["examples"] for part in data["parts"]) == 120
    assert re.fullmatch(r"[0-9a-f]{64}", data["parts"][0]["sha256"])
    rows = [
        json.loads(line)
        for line in (finished.path / "predictions.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(rows) == data["parts"][1]["examples"]
    assert {"text", "label", "prediction", "score", "scores", "line"} <= set(rows[0])
    assert (finished.path / "command.txt").read_text("utf-8").startswith("litebert train ")
    assert "packages" in json.loads((finished.path / "env.json").read_text("utf-8"))
    for line in (finished.path / "log.txt").read_text("utf-8").splitlines():
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", line)


def test_the_settings_read_back_as_they_were(finished: Run, table: Path) -> None:
    settings = load_settings(FinetuneSettings, finished.path / "config.toml")
    assert settings.data.train == str(table)
    assert (settings.train.epochs, settings.train.batch_size, settings.train.seed) == (2.0, 16, 3)
    assert settings.model.vocab_size == 100
    assert settings.model.config["hidden_size"] == 32


def test_the_report_needs_no_network(finished: Run) -> None:
    report = (finished.path / "report.html").read_text("utf-8")
    outside = re.findall(r"""(?:src|href)\s*=\s*["']?(?!#|data:)[^"'>\s]+""", report)
    assert outside == []
    assert "@import" not in report
    assert "<script" not in report.lower()
    for name in ("url(http", "url(//"):
        assert name not in report


def test_the_run_predicts(finished: Run, litebert: Litebert, tmp_path: Path) -> None:
    with (tmp_path / "new.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["review", "id"], ["the lamp, works well", 7], ["loud", 3]])
    done = litebert("predict", finished.path, "new.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.decode("utf-8").splitlines()))
    assert [(row["review"], row["id"]) for row in rows] == [
        ("the lamp, works well", "7"), ("loud", "3")
    ]  # fmt: skip
    model = package.load(finished.path)
    answers = model.predict([row["review"] for row in rows])
    assert [answer.label for answer in answers] == [row["prediction"] for row in rows]
    assert model.embed("loud").shape == (1, 32)


def test_the_run_is_evaluated_and_described(finished: Run, table: Path) -> None:
    runner = CliRunner()
    result = runner.invoke(app, ["evaluate", str(finished.path), str(table), "--json"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["examples"] == 120
    result = runner.invoke(app, ["info", str(finished.path), "--json"])
    assert json.loads(result.stdout)["config"]["hidden_size"] == 32


def test_answers_in_the_folder_are_those_of_the_model(finished: Run) -> None:
    rows = [
        json.loads(line)
        for line in (finished.path / "predictions.jsonl").read_text("utf-8").splitlines()
    ]
    answers = package.load(finished.path).predict([row["text"] for row in rows])
    for row, answer in zip(rows, answers, strict=True):
        assert row["score"] == pytest.approx(answer.score, abs=1e-5)


def test_a_finished_run_is_not_written_over(finished: Run, table: Path) -> None:
    before = (finished.path / "scores.json").stat().st_mtime_ns
    result = train(table, "--out", finished.path, "--yes")
    assert result.exit_code == 2
    assert "--resume" in result.stderr
    assert "baseline" not in result.stderr
    assert (finished.path / "scores.json").stat().st_mtime_ns == before


def test_dry_run_touches_nothing(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = train(table, "--dry-run", *SMALL)
    assert result.exit_code == 0, result.stderr
    for word in ("text      review", "because", "estimate", "memory"):
        assert word in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        ((), 2, "nothing to train on"),
        (("none.csv",), 66, "no such file"),
        (("empty.csv",), 65, "empty"),
        (("one-class.csv",), 65, ""),
        (("bad.csv",), 65, "bad.csv:4"),
        (("good.csv", "--set", "train.epoch=3"), 2, "did you mean 'epochs'"),
        (("good.csv", "--set", "trainn.epochs=3"), 2, "did you mean 'train'"),
        (("good.csv", "--set", "train.epochs"), 2, "section.key=value"),
        (("good.csv", "--epochs", "-1"), 2, "epochs"),
        (("good.csv", "--model", "tinny"), 66, "did you mean"),
        (("good.csv", "--model", "no/such/folder"), 66, "no such folder"),
        (("good.csv", "--metric", "accuracyy"), 2, "accuracy"),
        (("good.csv", "--label-column", "labell"), 2, "did you mean 'label'"),
        (("good.csv", "--max-length", "100000"), 2, "positions"),
        (("good.csv", "--set", "data.eval_fraction=2"), 2, "eval_fraction"),
        (("good.csv", "--config", "none.toml"), 66, "none.toml"),
        (("good.csv", "--config", "bad.toml"), 2, "not valid TOML"),
        (("good.csv", "--out", "good.csv"), 2, "exists and is not empty"),
        (("good.csv", "--out", "."), 2, "exists and is not empty"),
        (("good.csv", "--out", "good.csv/run"), 73, ""),
        (("--resume", "none"), 66, "no such run folder"),
        (("--resume", "."), 65, "no run folder"),
        (("good.csv", "--resume", "run"), 2, "no other settings"),
        (("good.csv", "--task", "glue/colla"), 2, "did you mean"),
        (("good.csv", "--encoding", "klingon"), 2, "encoding"),
        (("name\udce9.csv",), 2, "PYTHONUTF8=1"),
        (("good.csv", "--out", "name\udce9"), 2, "name\\udce9 is not UTF-8"),
        ((".",), 65, ""),
    ],
)
def test_mistakes_are_explained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    word: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"the {t} is {'fine' if i % 2 else 'late'},{'ab'[i % 2]}" for i, t in
            enumerate(["kettle", "lamp", "chair", "radio", "book", "parcel", "ladder", "carpet"] * 3)]  # fmt: skip
    (tmp_path / "good.csv").write_text("\n".join(["text,label", *rows]))
    (tmp_path / "bad.csv").write_text("\n".join(["text,label", *rows[:2], "a,b,c", *rows[2:]]))
    (tmp_path / "one-class.csv").write_text(
        "\n".join(["text,label", *(r[:-1] + "a" for r in rows)])
    )
    (tmp_path / "empty.csv").touch()
    (tmp_path / "bad.toml").write_text("a = = 3")
    if "run" in arguments:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "config.toml").write_text('[data]\ntrain = "good.csv"\n')
    before = sorted(tmp_path.iterdir())
    result = train(*arguments, "--yes")
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit)
    assert result.exit_code == code, result.stderr
    assert word in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_settings_from_a_file_with_the_line_on_top(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.toml").write_text(
        f'num_seeds = 2\n[data]\ntrain = "{table}"\nmax_length = 24\n[train]\nepochs = 7.0\n'
    )
    result = train("--config", "job.toml", "--epochs", "3", "--max-length", "16", "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert "at most 16 tokens" in result.stdout
    assert re.search(r"training  2 x 12 steps", result.stdout)


def test_another_program_is_not_needed(
    litebert: Litebert, table: Path, tmp_path: Path, finished: Run
) -> None:
    """Two seeds, no baselines, from the finished model, in a poor environment, into runs/NAME-N."""
    shutil.copy(table, tmp_path / "table.csv")
    bare = {
        "LANG": "C", "LC_ALL": None, "PYTHONIOENCODING": "ascii", "HOME": None, "TERM": "dumb",
        "NO_COLOR": "1",
    }  # fmt: skip
    done = litebert(
        "train", "table.csv", "--model", finished.path, "--no-baselines", "--seeds", "2",
        "--epochs", "1", "--set", "train.threads=1", cwd=tmp_path, env=bare,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = tmp_path / "runs" / "table-1"
    scores = json.loads((run / "scores.json").read_text("utf-8"))
    assert scores["baselines"] == {}
    assert len(scores["seeds"]) == 2
    assert b"\x1b" not in done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs", "table.csv"]
    weights = package.load(run).embed("the lamp")
    assert np.isfinite(weights).all()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_terminal_it_asks_and_no_means_no(table: Path, tmp_path: Path) -> None:
    import pty

    from .terminal import run_in_terminal

    assert pty is not None
    code, screen = run_in_terminal(["train", str(table), *SMALL], tmp_path, answer="n\n")
    assert code == 0
    assert "Train? [Y/n]" in screen
    assert list(tmp_path.iterdir()) == []
    code, screen = run_in_terminal(["train", str(table), *SMALL], tmp_path, answer="\x03")
    assert (code, "interrupted" in screen) == (130, True)
    assert "Traceback" not in screen
    assert list(tmp_path.iterdir()) == []
