"""Withheld answers and scores by part, in evaluate, predict, the run folder and the report."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))
from sample_run import sample_run

from litebert.cli import app
from litebert.errors import SettingsError
from litebert.recipes.abstain import extra_values, withhold
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.loading import load
from litebert.recipes.prediction_rows import PredictionRows
from litebert.recipes.report import render_report
from litebert.tasks.abstention import AbstentionPoint
from litebert.tasks.records import Answer
from litebert.tasks.slices import SliceScore

WORDS = ("lamp", "kettle", "parcel", "radio", "green chair", "old book")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    labels = ("good", "bad", "so-so")
    lines = [f"the {WORDS[i % 6]} number {i * 7},{labels[i % 3]}" for i in range(60)]
    path = tmp_path / "t.csv"
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_evaluate_by_parts(model_dir: Path, table: Path) -> None:
    report: Any = evaluate_folder(model_dir, EvaluationJob(table, has_slices=True))
    values = json.loads(json.dumps(report.to_dict()))
    kinds = {item["by"] for item in values["slices"]}
    assert kinds == {"length", "class"}
    counts = [item["count"] for item in values["slices"] if item["by"] == "class"]
    assert counts == [20, 20, 20]
    text = "\n".join(report.lines())
    assert "By length" in text and "By class" in text
    without: Any = evaluate_folder(model_dir, EvaluationJob(table))
    assert "slices" not in without.to_dict() and "By class" not in "\n".join(without.lines())


def test_evaluate_with_answers_withheld(model_dir: Path, table: Path) -> None:
    plain: Any = evaluate_folder(model_dir, EvaluationJob(table))
    rows = list(csv.DictReader(io.StringIO(table.read_text("utf-8"))))
    answers = load(model_dir).predict([row["text"] for row in rows])
    scores = sorted(answer.score for answer in answers)
    limit = (scores[29] + scores[30]) / 2
    result = run("evaluate", model_dir, table, "--abstain-below", limit, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["abstention"]
    given = [a.score >= limit for a in answers]
    right = [a.label == row["label"] for a, row in zip(answers, rows, strict=True)]
    assert found["coverage"] == pytest.approx(np.mean(given))
    assert found["accuracy"] == pytest.approx(np.mean(np.array(right)[given]))
    assert plain.evaluation.scores["accuracy"] == pytest.approx(np.mean(right))
    result = run("evaluate", model_dir, table, "--target-accuracy", "0.3")
    assert "abstain   below" in result.stdout and "chosen here for 30.0%" in result.stdout
    result = run("evaluate", model_dir, table, "--target-accuracy", "1", "--abstain-below", "0.5")
    assert result.exit_code == 2 and "give one" in result.stderr
    result = run("evaluate", model_dir, table, "--abstain-below", "1.5")
    assert result.exit_code == 2 and "above 0 and at most 1" in result.stderr


def test_predict_withholds_what_is_not_sure(model_dir: Path, table: Path) -> None:
    whole = [json.loads(line) for line in run(
        "predict", model_dir, table, "--format", "jsonl").stdout.splitlines()]  # fmt: skip
    limit = float(np.median([row["score"] for row in whole]))
    result = run("predict", model_dir, table, "--format", "jsonl", "--abstain-below", limit)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    withheld = 0
    for row, full in zip(rows, whole, strict=True):
        if full["score"] < limit:
            assert row == full | {"prediction": None}  # the probabilities stay
            withheld += 1
        elif full["score"] > limit:
            assert row == full
    assert 0 < withheld < len(rows)
    result = run("predict", model_dir, table, "--abstain-below", limit)
    cells = [row["prediction"] for row in csv.DictReader(io.StringIO(result.stdout))]
    assert sum(cell == "" for cell in cells) == pytest.approx(withheld, abs=1)
    lines = run("predict", model_dir, "the lamp", "--abstain-below", "1").stdout
    assert lines.startswith("\t") and lines.endswith("\n")


def test_numbers_have_nothing_to_abstain_by(
    make_model: Callable[..., Path], tmp_path: Path
) -> None:
    model = make_model("regression")
    result = run("predict", model, "the lamp", "--abstain-below", "0.5")
    assert result.exit_code == 2 and "nothing to abstain by" in result.stderr
    path = tmp_path / "t.csv"
    path.write_text("text,label\nlamp,1.0\nbook,2.0\n")
    with pytest.raises(SettingsError, match="nothing to abstain by"):
        evaluate_folder(model, EvaluationJob(path, target_accuracy=0.9))


def test_answers_to_records_are_withheld_too() -> None:
    rows = PredictionRows(
        [({"id": "a"}, Answer("yes", 0.9, {"n_best": [1]})), ({"id": "b"}, Answer("no", 0.2))]
    )
    rows.abstain_below = 0.5
    found = [json.loads(line) for line in rows.lines("jsonl")]
    assert [(row["prediction"], row["score"]) for row in found] == [("yes", 0.9), (None, 0.2)]
    assert found[0]["n_best"] == [1]


def test_what_remains_in_words_and_values() -> None:
    assert withhold([0.5], [True], threshold=None, wanted=None) is None
    none = withhold([0.5, 0.6], [False, False], threshold=None, wanted=0.9)
    assert none is not None and "no threshold makes 90.0%" in none.line()
    some = withhold([0.5, 0.6], [False, True], threshold=0.6, wanted=None)
    assert some is not None and (some.coverage, some.accuracy) == (0.5, 1.0)
    assert extra_values(None, None) == {}
    assert extra_values((), some) == {"slices": [], "abstention": some.to_dict()}


def test_the_report_shows_parts_and_thresholds() -> None:
    summary = sample_run(3).model_copy(
        update={
            "slices": (
                SliceScore("length", "1 to 9 characters", 30, {"f1_macro": 0.5, "accuracy": 0.25}),
                SliceScore("class", "<b>odd</b>", 7, {"accuracy": 1.0}),
            ),
            "abstention": (AbstentionPoint(0.9, 0.71, 0.6, 0.89), AbstentionPoint(0.99, None, 0.0, 1.0)),
        }
    )  # fmt: skip
    page = render_report(summary)
    for words in ("Scores by part", "By length", "1 to 9 characters", "25.0 %", "&lt;b&gt;odd",
                  "Answering only when sure", "0.710", "60.0 %", "not reached"):  # fmt: skip
        assert words in page, words
    assert "Scores by part" not in render_report(sample_run(3))
    assert summary.from_json(summary.to_json()) == summary
