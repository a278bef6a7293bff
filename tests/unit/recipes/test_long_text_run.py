"""Runs on texts that are read in windows: the plan, training, scores by text, and the saved model."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.data.check import _add_lengths
from litebert.data.report import Lengths
from litebert.errors import SettingsError
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.finetune.job import finish_run, start_run
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.loading import load
from litebert.recipes.predict import predict_table
from litebert.settings import build_settings
from litebert.tasks import load_task
from litebert.tasks.calibration import softmax
from litebert.train.events import Evaluated
from litebert.train.stop import StopRequest

FILLER = ("the", "parcel", "came", "on", "a", "day", "with", "rain", "and", "box")


def table(path: Path, kind: str, rows: int = 40) -> Path:
    """What decides stands at the end of two texts in three, far behind a cut at 16 tokens."""
    rng = random.Random(3)
    pair = ",other" if kind == "pairs" else ""
    lines = [f"text{pair},label"]
    for i in range(rows):
        word = ("fine", "late")[i % 2]
        filler = " ".join(rng.choice(FILLER) for _ in range(18 if i % 3 else 3))
        other = f",is it {rng.choice(FILLER)}" if pair else ""
        label = {"regression": str(i % 2), "multilabel": f"{word}|x{i % 3}"}.get(kind, word)
        lines.append(f"{filler} {word}{other},{label}")
    path.write_text("\n".join(lines) + "\n")
    return path


def settings(train: Path, kind: str, *overrides: str, **data: Any) -> FinetuneSettings:
    told = {"train": str(train), "max_length": 16} | data
    told |= {"text_columns": ["text", "other"]} if kind == "pairs" else {}
    told |= {"kind": {"pairs": "binary"}.get(kind, kind)}
    values = {
        "data": told,
        "model": {"source": "tiny", "vocab_size": 80,
                  "config": {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32}},
        "train": {"epochs": 2.0, "batch_size": 16, "precision": "fp32", "threads": 1,
                  "guard": {"enabled": False}},
        "num_seeds": 1, "has_baselines": False,
    }  # fmt: skip
    return build_settings(FinetuneSettings, values, overrides=overrides)


@pytest.mark.parametrize("kind", ["binary", "multilabel", "regression", "pairs"])
def test_from_the_table_to_the_answers(tmp_path: Path, kind: str) -> None:
    train = table(tmp_path / "t.csv", kind)
    plan = make_plan(settings(train, kind, long_texts="windows", stride=9))
    assert len(plan.train.encoded) > 2 * len(plan.train.examples) == 68
    assert plan.num_steps == 2 * -(-len(plan.train.encoded) // 16)
    assert plan.truncated_fraction == 0
    assert "read in windows that start every 9 pieces" in "\n".join(plan.describe())
    assert not any("are cut" in warning for warning in plan.warnings)
    folder = start_run(plan, tmp_path / "run", "litebert train t.csv --long-texts windows")
    events: list[Any] = []
    outcome = run_plan(plan, folder, on_event=events.append, stop=StopRequest())
    assert outcome.chosen.logits.shape == (6, len(plan.task.config_labels()))
    assert any(isinstance(event, Evaluated) for event in events)
    finish_run(outcome, folder)
    task = load_task(folder.best)
    assert (task.stride, task.max_length) == (9, 16)
    written = (folder.path / "predictions.jsonl").read_text("utf-8").splitlines()
    assert len(written) == 6
    held = tmp_path / "held.csv"
    rows = [line for line in train.read_text().splitlines() if line]
    held.write_text("\n".join([rows[0], *(rows[e.line - 1] for e in plan.eval.examples)]) + "\n")
    report = evaluate_folder(folder.path, EvaluationJob(held))
    stored = json.loads((folder.path / "scores.json").read_text("utf-8"))
    metric = stored["metric"]
    assert report.examples == 6
    assert report.evaluation.scores[metric] == pytest.approx(stored["score"][metric], abs=1e-6)
    answers = [json.loads(line) for line in predict_table(load(folder.path), held).lines("jsonl")]
    assert len(answers) == 6, "one answer a text"
    for line, answer in zip(written, answers, strict=True):
        assert json.loads(line)["score"] == pytest.approx(answer["score"], abs=1e-4)


def test_a_text_within_the_limit_is_answered_as_without_windows(tmp_path: Path) -> None:
    train = table(tmp_path / "t.csv", "binary")
    plan = make_plan(settings(train, "binary", long_texts="windows"))
    assert plan.task.stride == 7, "half of the pieces that fit"
    folder = start_run(plan, tmp_path / "run", "litebert train t.csv")
    finish_run(run_plan(plan, folder, on_event=lambda _: None, stop=StopRequest()), folder)
    predictor = load(folder.path)
    short, long = "came fine", "the parcel came on a day with rain " * 5 + "fine"
    windows = [predictor.predict(text)[0] for text in (short, long)]
    task = predictor.task
    assert task is not None
    predictor.task = task.model_copy(update={"stride": None})
    cut = [predictor.predict(text)[0] for text in (short, long)]
    assert windows[0] == cut[0]
    assert windows[1].score != cut[1].score
    predictor.task = task
    examples = [e for e in plan.eval.examples if len(e.text.split()) > 15][:1]
    logits = predictor.logits(examples)
    pieces = predictor.tokenizer.pieces(examples[0].text)
    starts = [*range(0, len(pieces.ids) - 14, 7), len(pieces.ids) - 14]
    # An independent way: cut the text itself at the pieces, and answer each part alone.
    parts = [
        examples[0].text[pieces.spans[s][0] : pieces.spans[min(s + 13, len(pieces.ids) - 1)][1]]
        for s in starts
    ]
    alone = predictor.logits([type(examples[0])(p, None, None, Path("t"), 1) for p in parts])
    mean = np.log(softmax(alone)).mean(axis=0)
    assert softmax(logits)[0] == pytest.approx(np.exp(mean) / np.exp(mean).sum(), abs=1e-4)


def test_a_training_without_long_texts_is_the_same_with_and_without_windows(tmp_path: Path) -> None:
    train = table(tmp_path / "t.csv", "binary")
    plans = [
        make_plan(settings(train, "binary", max_length=256, long_texts=word))
        for word in ("truncate", "windows")
    ]
    for a, b in zip(plans[0].train.encoded, plans[1].train.encoded, strict=True):
        assert np.array_equal(a.ids, b.ids) and a.label == b.label and a.index == b.index
    assert plans[0].settings.train == plans[1].settings.train


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    train = table(tmp_path / "t.csv", "binary")
    with pytest.raises(SettingsError, match=r"data\.stride is for windows; set data\.long_texts"):
        make_plan(settings(train, "binary", stride=9))
    with pytest.raises(SettingsError, match=r"data\.stride is 15 and would skip.* 1 to .* = 14"):
        make_plan(settings(train, "binary", long_texts="windows", stride=15))
    with pytest.raises(SettingsError, match="few_shot learns from whole texts"):
        make_plan(settings(train, "binary", "few_shot=true", long_texts="windows"))
    with pytest.raises(SettingsError, match=r"long_texts.*truncate.*windows"):
        settings(train, "binary", long_texts="slide")


def test_records_have_windows_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "t.conll"
    path.write_text("Mira B-PER\nlives O\n\n" * 20)
    for more in ({"long_texts": "windows"}, {"stride": 4}):
        values = {"data": {"train": str(path), "task": "tagging"} | more}
        with pytest.raises(SettingsError, match=r"data\.long_texts and data\.stride belong to"):
            make_plan(build_settings(FinetuneSettings, values))


def test_cut_texts_are_told_of_windows(tmp_path: Path) -> None:
    train = table(tmp_path / "t.csv", "binary")
    plan = make_plan(settings(train, "binary"))
    assert any("read whole texts in windows with --long-texts windows" in w for w in plan.warnings)
    pairs = table(tmp_path / "p.csv", "pairs")
    rows = pairs.read_text().splitlines()
    longer = [row.replace("is it", "is it " + "rain and box " * 6) for row in rows]
    pairs.write_text("\n".join(longer) + "\n")
    plan = make_plan(settings(pairs, "pairs", long_texts="windows"))
    assert plan.truncated_fraction == 1, "both texts are longer than half of the room"
    assert not any("--long-texts" in warning for warning in plan.warnings)
    problems: list[Any] = []
    _add_lengths(
        Lengths(sampled=10, mean=90, median=90, p95=200, longest=300, max_length=64,
                truncated_fraction=0.5, lost_fraction=0.2, unknown_fraction=0), problems
    )  # fmt: skip
    assert "--long-texts windows" in problems[0].message
