"""A whole run over records in this process: plan, training, files, prediction, evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from litebert.data.readers import NamedColumns
from litebert.errors import DataError, SettingsError
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.finetune.job import finish_run, result_lines, start_run
from litebert.recipes.finetune.record_plan import RecordPlan, record_texts
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.predictor import Predictor
from litebert.recipes.record_predict import (
    columns_of,
    kind_of,
    predict_record_text,
    predict_records,
)
from litebert.settings import build_settings
from litebert.train.stop import StopRequest

NAMES = ("Mira", "Tomas", "Ilka", "Bruno")
PLACES = ("Ulm", "Graz", "Oslo")


def sentences(path: Path, count: int = 60) -> Path:
    """Original sentences in the two-column form, people and places tagged."""
    lines: list[str] = []
    for i in range(count):
        name, place = NAMES[i % len(NAMES)], PLACES[i % len(PLACES)]
        lines += [f"{name} B-PER", "lives O", "in O", f"{place} B-LOC", "", ""]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def questions(path: Path, count: int = 40) -> Path:
    """Original questions with two or three choices, as JSON lines."""
    rows: list[str] = []
    for i in range(count):
        choices = ["wet", "dry", "old"][: 2 + i % 2]
        rows.append(
            json.dumps({"question": f"How is rain number {i}?", "choices": choices, "answer": 0})
        )
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def settings(train: Path, kind: str, **more: Any) -> FinetuneSettings:
    data = {"train": str(train), "task": kind} | more.pop("data", {})
    values = {
        "data": data,
        "model": {
            "source": "tiny",
            "vocab_size": 64,
            "config": {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32},
        },
        "train": {"epochs": 3.0, "batch_size": 8, "precision": "fp32", "threads": 1,
                  "learning_rate": 3e-3},
        "num_seeds": 1,
    } | more  # fmt: skip
    return build_settings(FinetuneSettings, values)


def run(wanted: FinetuneSettings, out: Path) -> tuple[Any, Any]:
    plan = make_plan(wanted)
    assert isinstance(plan, RecordPlan)
    folder = start_run(plan, out, "litebert train FILE")
    outcome = run_plan(plan, folder, on_event=lambda _: None, stop=StopRequest())
    finish_run(outcome, folder)
    return outcome, folder


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    place = tmp_path_factory.mktemp("tagged")
    file = sentences(place / "people.conll")
    return *run(settings(file, "tagging"), place / "run"), file


def test_a_run_leaves_scores_predictions_report_and_card(tagged: tuple[Any, Any, Path]) -> None:
    outcome, folder, _ = tagged
    scores = json.loads((folder.path / "scores.json").read_text())
    assert scores["metric"] == "entity_f1"
    assert scores["score"]["entity_f1"] == pytest.approx(outcome.chosen.scores["entity_f1"])
    assert list(scores["baselines"]) == [baseline.name for baseline in outcome.baselines]
    lines = (folder.path / "predictions.jsonl").read_text().splitlines()
    assert len(lines) == len(outcome.plan.eval.examples)
    assert {"text", "label", "prediction", "score", "file", "line"} <= set(json.loads(lines[0]))
    card = (folder.best / "README.md").read_text()
    assert "pipeline_tag: token-classification" in card and "litebert.load" not in card
    assert "task tagging" in (folder.path / "report.html").read_text()
    assert any("litebert evaluate" in line for line in result_lines(outcome, folder))
    facts = json.loads((folder.path / "data.json").read_text())
    assert facts["task"] == "tagging" and len(facts["parts"]) == 2


def test_no_document_is_on_both_sides(tagged: tuple[Any, Any, Path]) -> None:
    plan = tagged[0].plan
    train, held = ({r.group for r in part.examples} for part in (plan.train, plan.eval))
    assert train and held and not train & held
    assert plan.num_steps == 3 * -(-len(plan.train.features) // 8)
    assert sum(plan.lengths.values()) == len(plan.train.features)
    assert any("held out" in line for line in plan.describe())
    assert plan.estimate()


def test_the_saved_model_answers_and_is_scored(tagged: tuple[Any, Any, Path]) -> None:
    _, folder, file = tagged
    predictor = Predictor.load(folder.path)
    task: Any = predictor.task
    assert kind_of(folder.path, task) == "tagging"
    assert kind_of(folder.best, task, "wikigold") == "wikigold"
    rows = [json.loads(line) for line in predict_records(predictor, file, "tagging").lines("jsonl")]
    assert len(rows) == 60 and all("prediction" in row and "score" in row for row in rows)
    table = list(predict_records(predictor, file, "tagging").lines("csv"))
    assert table[0].rstrip().endswith("prediction,score,details") and len(table) == 61
    plain = list(predict_records(predictor, file, "tagging").lines("plain"))
    assert len(plain) == 60 and all("\t" in line for line in plain)
    report: Any = evaluate_folder(folder.path, EvaluationJob(data=file))
    assert report.records == 60 and report.to_dict()["scores"]["entity_f1"] >= 0
    assert any("entity_f1" in line for line in report.lines())
    job = EvaluationJob(data=file, has_slices=True, target_accuracy=0.01)
    report = evaluate_folder(folder.path, job)
    assert {item["by"] for item in report.to_dict()["slices"]} == {"length"}
    assert any(line.startswith("abstain") for line in report.lines())


def test_one_text_is_tagged(tagged: tuple[Any, Any, Path]) -> None:
    _, folder, _ = tagged
    predictor = Predictor.load(folder.path)
    (line,) = predict_record_text(predictor, "Mira lives in Ulm.", None).lines("jsonl")
    row = json.loads(line)
    assert row["text"] == "Mira lives in Ulm." and isinstance(row["prediction"], list)
    with pytest.raises(DataError, match="takes one text"):
        predict_record_text(predictor, "Mira", "Ulm")
    with pytest.raises(DataError, match="the text is empty"):
        predict_record_text(predictor, " ", None)


def test_what_a_record_model_refuses(tagged: tuple[Any, Any, Path], tmp_path: Path) -> None:
    _, folder, file = tagged
    with pytest.raises(SettingsError, match=r"no split 'test'.* train"):
        evaluate_folder(folder.path, EvaluationJob(data=file, split="test"))
    with pytest.raises(
        SettingsError,
        match=r"task 'tagging' reads its own file format and takes no names of columns",
    ):
        evaluate_folder(folder.path, EvaluationJob(data=file, label_column="tag"))
    with pytest.raises(DataError, match="no such file"):
        evaluate_folder(folder.path, EvaluationJob(data=tmp_path / "none.conll"))
    with pytest.raises(SettingsError, match=r"unknown task 'taging'; did you mean 'tagging'"):
        evaluate_folder(folder.path, EvaluationJob(data=file, task="taging"))


def test_choices_of_different_numbers(tmp_path: Path) -> None:
    file = questions(tmp_path / "rain.jsonl")
    outcome, folder = run(settings(file, "choice", task={"max_length": 32}), tmp_path / "run")
    assert outcome.plan.task.max_length == 32
    predictor = Predictor.load(folder.path)
    rows = [json.loads(line) for line in predict_records(predictor, file, "choice").lines("jsonl")]
    assert {row["prediction"] for row in rows} <= {"wet", "dry", "old"}
    with pytest.raises(SettingsError, match="answers records of a file"):
        predict_record_text(predictor, "How is rain?", None)


def test_columns_of_choices_as_told_are_remembered(tmp_path: Path) -> None:
    rows = [
        f"Wie ist Regen {i}?,am See {i},nass,trocken,{'nass' if i % 4 else 'trocken'}"
        for i in range(24)
    ]
    file = tmp_path / "fragen.csv"
    file.write_text("\n".join(["frage,ort,eins,zwei,stimmt", *rows]) + "\n")
    told = {"text_columns": ["frage", "ort"], "choice_columns": ["eins", "zwei"]}
    data = told | {"label_column": "stimmt"}
    with pytest.raises(DataError, match="no columns look like choices"):
        make_plan(settings(file, "choice"))
    wanted = settings(file, "choice", data=data, task={"max_length": 32})
    outcome, folder = run(wanted, tmp_path / "run")
    assert "context 'ort'" in "\n".join(outcome.plan.notes)
    report: Any = evaluate_folder(folder.path, EvaluationJob(data=file))
    assert report.records == 24
    report = evaluate_folder(
        folder.path,
        EvaluationJob(
            file, text_columns=("frage",), label_column="stimmt", choice_columns=("eins", "zwei")
        ),
    )
    assert report.records == 24
    with pytest.raises(SettingsError, match="no column 'stimmtt'; did you mean 'stimmt'"):
        evaluate_folder(folder.path, EvaluationJob(file, label_column="stimmtt"))
    predictor = Predictor.load(folder.best)
    columns = columns_of(folder.best, "choice", NamedColumns())
    assert columns.is_remembered and columns.choices == ("eins", "zwei")
    lines = list(predict_records(predictor, file, "choice", columns=columns).lines("jsonl"))
    assert len(lines) == 24
    english = questions(tmp_path / "rain.jsonl", 4)
    assert (
        len(list(predict_records(predictor, english, "choice", columns=columns).lines("jsonl")))
        == 4
    )
    with pytest.raises(SettingsError, match=r"data\.choice_columns belongs to tables of choices"):
        make_plan(build_settings(FinetuneSettings, {"data": {"train": str(file), **told}}))


def test_columns_of_pairs_as_told(tmp_path: Path) -> None:
    rows = [f"the lake {i},a lake {i},x{i},{i % 5}" for i in range(30)]
    file = tmp_path / "t.csv"
    file.write_text("\n".join(["eins,zwei,drei,nah", *rows]) + "\n")
    told = {"text_columns": ["eins", "zwei"], "label_column": "nah"}
    plan: Any = make_plan(settings(file, "similarity", data=told))
    assert plan.train.examples[0].texts[0].startswith("the lake")
    assert plan.train.examples[0].score is not None
    for wrong in (
        {"text_columns": ["eins"]},
        {"text_columns": ["eins", "eins"]},
        {"label_column": "nah"},
    ):
        with pytest.raises(SettingsError, match="needs two different text columns"):
            make_plan(settings(file, "similarity", data=wrong))
    with pytest.raises(SettingsError, match="no column 'nahe'; did you mean 'nah'"):
        make_plan(settings(file, "similarity", data=told | {"label_column": "nahe"}))


def test_settings_that_records_do_not_have(tmp_path: Path) -> None:
    file = sentences(tmp_path / "people.conll", 8)
    with pytest.raises(SettingsError, match=r"takes no names of columns .*choice.*similarity"):
        make_plan(settings(file, "tagging", data={"label_column": "tag"}))
    with pytest.raises(SettingsError, match=r"max_length is 4096.* 512 positions"):
        make_plan(settings(file, "tagging", data={"max_length": 4096}))
    with pytest.raises(SettingsError, match="stride"):
        make_plan(settings(file, "tagging", task={"strid": 3}))
    csv = tmp_path / "t.csv"
    csv.write_text("text,label\n" + "a b,yes\nc d,no\n" * 9)
    with pytest.raises(SettingsError, match=r"task\.stride belongs to tasks over records"):
        make_plan(
            build_settings(FinetuneSettings, {"data": {"train": str(csv)}, "task": {"stride": 3}})
        )


def test_nothing_to_learn_from_is_said(tmp_path: Path) -> None:
    file, empty = sentences(tmp_path / "people.conll", 8), tmp_path / "empty.conll"
    empty.write_text("\n\n")
    with pytest.raises(DataError):
        make_plan(settings(empty, "tagging"))
    with pytest.raises(DataError):
        make_plan(settings(file, "tagging", data={"eval": str(empty)}))


def test_fewer_records_and_a_file_to_score_on(tmp_path: Path) -> None:
    file, other = sentences(tmp_path / "a.conll", 30), sentences(tmp_path / "b.conll", 6)
    plan = make_plan(settings(file, "tagging", data={"eval": str(other), "max_examples": 10}))
    assert (len(plan.train.examples), len(plan.eval.examples)) == (10, 6)
    assert any("uncertain" in note for note in plan.notes)


def test_all_texts_of_a_record_are_found(tagged: tuple[Any, Any, Path]) -> None:
    record = tagged[0].plan.train.examples[0]
    assert any("lives in" in text for text in record_texts(record))
    assert not any("people.conll" in text for text in record_texts(record))
