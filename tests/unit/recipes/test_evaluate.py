from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.recipes.data_check import run_check
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.loading import load

ROWS = "a lamp,good\nlate,bad\nfine kettle,so-so\nnever again,bad\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "held out.csv"
    path.write_text("text,label\n" + ROWS * 4)
    return path


def test_the_scores_are_those_of_the_answers(model_dir: Path, table: Path) -> None:
    report = evaluate_folder(model_dir, EvaluationJob(table))
    texts, labels = zip(*(line.split(",") for line in (ROWS * 4).splitlines()), strict=True)
    answers = [answer.label for answer in load(model_dir).predict(list(texts))]
    right = np.mean([answer == label for answer, label in zip(answers, labels, strict=True)])
    assert report.evaluation.scores["accuracy"] == pytest.approx(right)
    assert report.majority["accuracy"] == 0.5
    values = json.loads(json.dumps(report.to_dict()))
    assert np.sum(values["confusion"]) == values["examples"] == 16
    text = "\n".join(report.lines())
    assert "majority" in text
    assert "so-so" in text


def test_the_part_of_a_folder(model_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "train.csv").write_text("text,label\n" + ROWS * 2)
    assert evaluate_folder(model_dir, EvaluationJob(folder)).examples == 8
    (folder / "validation.csv").write_text("text,label\n" + ROWS)
    assert evaluate_folder(model_dir, EvaluationJob(folder)).examples == 4
    assert evaluate_folder(model_dir, EvaluationJob(folder, split="train")).examples == 8
    for split in ("test", "dev set"):
        with pytest.raises(SettingsError, match="there is: train, eval"):
            evaluate_folder(model_dir, EvaluationJob(folder, split=split))


def test_columns_of_other_names(model_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("review,verdict\n" + ROWS)
    with pytest.raises(SettingsError, match="no column 'text'"):
        evaluate_folder(model_dir, EvaluationJob(path))
    job = EvaluationJob(path, text_columns=("review",), label_column="verdict")
    assert evaluate_folder(model_dir, job).examples == 4
    with pytest.raises(SettingsError, match="the model takes one text"):
        evaluate_folder(model_dir, EvaluationJob(path, text_columns=("review", "verdict")))


def test_numbers(make_model: Callable[..., Path], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,label\na lamp,1.5\nlate,-2\nfine kettle,0\n")
    report = evaluate_folder(make_model("regression"), EvaluationJob(path))
    assert report.evaluation.class_table == () or not report.evaluation.class_table
    assert "pearson" in "\n".join(report.lines())
    assert "nan" not in "\n".join(report.lines())


def test_what_cannot_be_scored(model_dir: Path, table: Path, tmp_path: Path) -> None:
    bare = shutil.copytree(model_dir, tmp_path / "bare")
    (bare / "task.json").unlink()
    with pytest.raises(CheckpointError, match=r"no task\.json"):
        evaluate_folder(bare, EvaluationJob(table))
    table.write_text("text,label\n,good\n,bad\n")
    with pytest.raises(DataError, match="no usable record to score on"):
        evaluate_folder(model_dir, EvaluationJob(table, on_bad_row="skip"))


def test_data_are_checked_with_the_tokenizer_of_a_model(model_dir: Path, table: Path) -> None:
    report = run_check(table, tokenizer=model_dir, max_length=8)
    assert "trunc" in report.to_text() or "cut" in report.to_text()
    with pytest.raises(CheckpointError):
        run_check(table, tokenizer=table.parent)
