"""A whole run in this process, at the smallest size."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.finetune.classification_work import MIN_CALIBRATION_EXAMPLES
from litebert.recipes.finetune.job import finish_run, open_run, result_lines, start_run
from litebert.recipes.finetune.run import BaselineScored, SeedFinished, SeedStarted, run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.loading import load
from litebert.recipes.run_folder import RunFolder
from litebert.settings import build_settings
from litebert.train.events import Stepped
from litebert.train.stop import StopRequest

CLOSE = 1e-6
"""Scores written as text and read again."""


def table(path: Path, kind: str, rows: int = 48) -> Path:
    rng = random.Random(4)
    words = ("fine", "late", "dented")
    lines = ["text,label"]
    for i in range(rows):
        word, other = words[i % 3], rng.choice(words)
        label = {
            "multiclass": word, "regression": str(i % 3), "multilabel": f"{word}|{other}",
        }[kind]  # fmt: skip
        lines.append(f"parcel number {rng.randrange(99)} was {word} and {other},{label}")
    path.write_text("\n".join(lines) + "\n")
    return path


def settings(train: Path, kind: str, **more: Any) -> FinetuneSettings:
    values = {
        "data": {"train": str(train), "kind": kind},
        "model": {
            "source": "tiny",
            "vocab_size": 80,
            "config": {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32},
        },
        "train": {"epochs": 2.0, "batch_size": 16, "precision": "fp32", "threads": 1,
                  "guard": {"enabled": False}},
        "num_seeds": 1,
    } | more  # fmt: skip
    return build_settings(FinetuneSettings, values)


def carry_out(
    wanted: FinetuneSettings, out: Path, stop_at: int | None = None
) -> tuple[Any, Any, Any]:
    plan = make_plan(wanted)
    folder = start_run(plan, out, "litebert train t.csv")
    events: list[Any] = []
    stop = StopRequest()

    def on_event(event: Any) -> None:
        events.append(event)
        if isinstance(event, Stepped) and event.step == stop_at:
            stop.request()

    return run_plan(plan, folder, on_event=on_event, stop=stop), folder, events


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "regression"])
def test_each_kind_of_label(tmp_path: Path, kind: str) -> None:
    train = table(tmp_path / "t.csv", kind)
    outcome, folder, events = carry_out(settings(train, kind), tmp_path / "run")
    assert not outcome.is_interrupted
    finish_run(outcome, folder)
    names = [event.baseline.name for event in events if isinstance(event, BaselineScored)]
    assert names == ["majority", "tfidf"]
    lines = "\n".join(result_lines(outcome, folder))
    assert "this model" in lines
    scores = json.loads((folder.path / "scores.json").read_text("utf-8"))
    assert isinstance(scores["slices"], list) and isinstance(scores["abstention"], list)
    mistakes = (folder.path / "mistakes.jsonl").read_text("utf-8").splitlines()
    losses = [json.loads(line)["loss"] for line in mistakes]
    assert losses == sorted(losses, reverse=True)
    written = (folder.path / "predictions.jsonl").read_text("utf-8")
    held = [json.loads(line) for line in written.splitlines()]
    evaluation = tmp_path / "held.csv"
    rows = ["text,label"]
    for row in held:
        label = "|".join(row["label"]) if isinstance(row["label"], list) else row["label"]
        rows.append(f"{row['text']},{label}")
    evaluation.write_text("\n".join(rows))
    report = evaluate_folder(folder.path, EvaluationJob(evaluation))
    metric = scores["metric"]
    assert report.evaluation.scores[metric] == pytest.approx(scores["score"][metric], abs=CLOSE)
    assert report.examples == len(held)
    assert len("\n".join(report.lines())) > 40
    answers = load(folder.path).predict([row["text"] for row in held])
    for row, answer in zip(held, answers, strict=True):
        assert row["score"] == pytest.approx(answer.score, abs=1e-4)


def test_several_seeds_and_the_best_is_kept(tmp_path: Path) -> None:
    train = table(tmp_path / "t.csv", "multiclass")
    wanted = settings(train, "multiclass", num_seeds=3, has_baselines=False)
    _, folder, events = carry_out(wanted, tmp_path / "run")
    assert [e.seed for e in events if isinstance(e, SeedStarted)] == [0, 1, 2]
    assert len([e for e in events if isinstance(e, SeedFinished)]) == 3
    scores = json.loads((folder.path / "scores.json").read_text("utf-8"))
    values = [seed["score"] for seed in scores["seeds"]]
    assert scores["score"][scores["metric"]] == max(values)
    assert scores["median"] == sorted(values)[1]
    assert scores["spread"] == pytest.approx(max(values) - min(values))


def test_a_stopped_run_has_no_model_and_goes_on(tmp_path: Path) -> None:
    train = table(tmp_path / "t.csv", "multiclass")
    wanted = settings(train, "multiclass", has_baselines=False)
    whole, whole_folder, _ = carry_out(wanted, tmp_path / "whole")
    assert not whole.is_interrupted
    stopped, folder, _ = carry_out(wanted, tmp_path / "run", stop_at=3)
    assert stopped.is_interrupted
    assert not folder.best.exists()
    opened, again = open_run(folder.path)
    assert (opened, again) == (RunFolder(folder.path), make_plan(wanted).settings)
    outcome = run_plan(
        make_plan(again), opened, on_event=lambda event: None, stop=StopRequest(), resume=True
    )
    assert not outcome.is_interrupted
    for name in ("model-best", "model-last"):
        weights = (folder.path / name / "model.safetensors").read_bytes()
        assert weights == (whole_folder.path / name / "model.safetensors").read_bytes()


def test_a_model_can_be_trained_further(tmp_path: Path, model_dir: Path) -> None:
    train = table(tmp_path / "t.csv", "multiclass")
    wanted = settings(train, "multiclass", has_baselines=False, model={"source": str(model_dir)})
    outcome, folder, _ = carry_out(wanted, tmp_path / "run")
    assert not outcome.is_interrupted
    assert load(folder.path).predict("parcel")[0].label in ("fine", "late", "dented")


def test_without_scikit_learn_the_vectors_start_at_random_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    wanted = settings(table(tmp_path / "t.csv", "multiclass"), "multiclass")
    outcome, _, events = carry_out(wanted, tmp_path / "run")
    assert [e.baseline.name for e in events if isinstance(e, BaselineScored)] == ["majority"]
    assert outcome.chosen is not None
    assert "word vectors start at random" in caplog.text


def test_few_answers_choose_no_temperature(tmp_path: Path) -> None:
    """All of a handful right would make every later answer certain."""
    path = tmp_path / "few.csv"
    rows = [f"{word} number {n},{word}" for n in range(12) for word in ("good", "bad")]
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    settings = build_settings(
        FinetuneSettings,
        {
            "data": {"train": str(path)},
            "train": {"max_steps": 3},
            "has_baselines": False,
            "num_seeds": 1,
        },
    )
    plan = make_plan(settings)
    folder = RunFolder.create(tmp_path / "run", name="run")
    outcome = run_plan(plan, folder, on_event=lambda _: None, stop=StopRequest())
    assert len(plan.eval.examples) < MIN_CALIBRATION_EXAMPLES
    assert outcome.task is not None
    assert outcome.task.temperature == 1.0
    assert outcome.ece_after is None
