"""Trainings that collapse, rebuilt at the smallest size: a person is told, with the cause."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from litebert.errors import TrainingDiverged
from litebert.recipes.finetune import job
from litebert.recipes.finetune.job import finish_run, result_lines, start_run
from litebert.recipes.finetune.outcome import Outcome
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import RunFolder
from litebert.settings import build_settings
from litebert.train.events import Found, Restarted
from litebert.train.stop import StopRequest


@pytest.fixture(autouse=True)
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take longer than these trainings."""
    monkeypatch.setattr(job, "draw_plots", lambda summary: {})


def table(path: Path, rows: list[tuple[str, Any]]) -> Path:
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def reviews(
    count: int, seed: int = 1, shares: tuple[str, ...] = ("good", "bad")
) -> list[tuple[str, Any]]:
    rng = random.Random(seed)
    words = {"good": ("fine", "lovely", "sturdy"), "bad": ("broken", "late", "dented")}
    return [
        (f"the {rng.choice(('lamp', 'chair', 'book'))} {i} is {rng.choice(words[label])}", label)
        for i, label in ((i, shares[i % len(shares)]) for i in range(count))
    ]


def wanted(file: Path, **more: Any) -> FinetuneSettings:
    data = {"train": str(file)} | more.pop("data", {})
    values = {
        "data": data,
        "model": {
            "source": "tiny", "vocab_size": 80,
            "config": {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16,
                       "embedding_size": 16, "num_hidden_layers": 1},
        },
        "train": {"epochs": 2.0, "batch_size": 8, "precision": "fp32", "threads": 1}
        | more.pop("train", {}),
        "num_seeds": 1,
        "has_baselines": False,
    } | more  # fmt: skip
    return build_settings(FinetuneSettings, values)


def carry_out(settings: FinetuneSettings, out: Path) -> tuple[Outcome, RunFolder, list[Any], str]:
    plan = make_plan(settings)
    folder = start_run(plan, out, "litebert train t.jsonl")
    events: list[Any] = []
    outcome = run_plan(plan, folder, on_event=events.append, stop=StopRequest())
    finish_run(outcome, folder)
    return outcome, folder, events, "\n".join(result_lines(outcome, folder))


def test_a_rate_that_is_far_too_high(tmp_path: Path) -> None:
    """google-research/albert#197, #207, huggingface/transformers#2104, #2553: one answer for ever."""
    settings = wanted(
        table(tmp_path / "t.jsonl", reviews(200)),
        train={
            "learning_rate": 0.9, "max_steps": 140, "eval_steps": 20, "optimizer": "adamw",
            "guard": {"restarts": 0, "chance_steps": 10, "min_progress_fraction": 0.0},
        },
    )  # fmt: skip
    assert any("a learning rate of 0.9 is above" in w for w in make_plan(settings).warnings)
    try:
        text = carry_out(settings, tmp_path / "run")[3]
    except TrainingDiverged as error:
        text = str(error)
    assert "ignore" in text  # every answer is the same, the input has no influence
    assert "lower --lr" in text


def test_fresh_starts_lower_the_rate(tmp_path: Path) -> None:
    settings = wanted(
        table(tmp_path / "t.jsonl", reviews(160)),
        train={
            "learning_rate": 0.9, "max_steps": 120, "eval_steps": 20, "optimizer": "adamw",
            "guard": {"restarts": 1, "restart_lr_factor": 0.003, "chance_steps": 10,
                      "min_progress_fraction": 0.0},
        },
    )  # fmt: skip
    outcome, _, events, text = carry_out(settings, tmp_path / "run")
    (restart,) = [event for event in events if isinstance(event, Restarted)]
    assert restart.learning_rate == pytest.approx(0.9 * 0.003)
    assert any(isinstance(event, Found) and event.finding.is_confirmed for event in events)
    assert outcome.chosen is not None and outcome.chosen.scores["accuracy"] > 0.6
    assert "ignores" not in text


def test_the_score_of_the_frequent_label(tmp_path: Path) -> None:
    """google-research/albert#120: 66 % on RTE and CoLA is the majority, and looks like a result."""
    settings = wanted(
        table(tmp_path / "t.jsonl", reviews(240, shares=("good", "good", "good", "bad"))),
        train={"max_steps": 3, "learning_rate": 1e-6, "guard": {"enabled": False}},
        has_baselines=True,
    )
    outcome, folder, _, text = carry_out(settings, tmp_path / "run")
    assert "answers are 'good', which is right for 75.0%" in text
    assert "3 optimizer steps in all are too few" in text  # the likely cause, named again
    assert "majority   0.75" in text  # beside the score
    report = (folder.path / "report.html").read_text("utf-8")
    assert "Learned nothing useful" in report and "ignores the texts" in report
    assert outcome.chosen is not None


def test_labels_swapped_between_the_files(tmp_path: Path) -> None:
    train = table(tmp_path / "t.jsonl", reviews(240))
    other = {"good": "bad", "bad": "good"}
    swapped = [(text, other[label]) for text, label in reviews(60, seed=9)]
    settings = wanted(
        train,
        data={"eval": str(table(tmp_path / "e.jsonl", swapped))},
        train={"max_steps": 200, "learning_rate": 1e-2, "eval_steps": 25,
               "guard": {"enabled": False}},
    )  # fmt: skip
    outcome, _, _, text = carry_out(settings, tmp_path / "run")
    assert outcome.chosen is not None and outcome.chosen.result is not None
    # The kept model is the one that had learnt least, so its score alone says nothing.
    assert outcome.chosen.result.last_metrics["accuracy"] < 0.2
    assert "likely swapped; compare some rows of both" in text


def test_a_number_that_never_changes(tmp_path: Path) -> None:
    """huggingface/sentence-transformers#263: Pearson is NaN, because all answers are equal."""
    rows = [(f"the lamp {i} costs something", float(i % 17)) for i in range(160)]
    settings = wanted(
        table(tmp_path / "t.jsonl", rows),
        data={"kind": "regression"},
        train={"max_steps": 2, "learning_rate": 1e-7, "guard": {"enabled": False}},
    )
    outcome, folder, _, text = carry_out(settings, tmp_path / "run")
    assert "answers are about" in text and "ignores the texts" in text
    scores = json.loads((folder.path / "scores.json").read_text("utf-8"))["score"]
    assert all(
        math.isfinite(value) for value in scores.values()
    )  # never NaN, which compares with nothing
    assert outcome.faults


def squad(path: Path, count: int, *, impossible: bool) -> Path:
    questions = [
        {
            "id": f"q{i}",
            "question": f"Who keeps lamp {i}?",
            "is_impossible": impossible and i % 4 != 0,
            "answers": [] if impossible and i % 4 != 0 else [{"text": "Mira", "answer_start": 0}],
        }
        for i in range(count)
    ]
    paragraphs = [
        {"context": f"Mira keeps lamp {i} in the hall.", "qas": [question]}
        for i, question in enumerate(questions)
    ]
    data = [{"title": f"t{i}", "paragraphs": [p]} for i, p in enumerate(paragraphs)]
    path.write_text(json.dumps({"version": "v2.0", "data": data}), encoding="utf-8")
    return path


def test_no_question_is_answered(tmp_path: Path) -> None:
    """google-research/albert#230, #25: 50.1 on SQuAD 2 is the score of answering nothing."""
    settings = wanted(
        squad(tmp_path / "s.json", 60, impossible=True),
        data={"task": "squad_v2", "eval_fraction": 0.4},
        train={"max_steps": 10, "learning_rate": 0.3, "eval_steps": 10},
        task={"max_length": 48, "doc_stride": 16, "max_query_length": 16},
    )
    text = carry_out(settings, tmp_path / "run")[3]
    assert "answers are empty" in text or "same place" in text or "start at character" in text
    assert "warm-up" in text  # what to do


def test_no_entity_is_found(tmp_path: Path) -> None:
    """huggingface/transformers#2983, #1683: F1 exactly 0, every word is outside."""
    between = "walks O\nto O\nthe O\nold O\nhouse O\nin O"
    lines = [f"{('Mira', 'Ilka')[i % 2]} B-PER\n{between}\nUlm B-LOC\n\n" for i in range(80)]
    path = tmp_path / "n.conll"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = wanted(path, data={"task": "tagging"}, train={"max_steps": 4, "learning_rate": 1e-3})
    outcome, _, _, text = carry_out(settings, tmp_path / "run")
    assert outcome.chosen is not None and outcome.chosen.scores["entity_f1"] == 0.0
    assert "warning" in text and ("no entity was answered" in text or "entities" in text)
    assert "4 optimizer steps in all are too few" in text


def test_parts_add_up_to_the_whole(tmp_path: Path) -> None:
    """google-research/albert#267: scores of parts that do not add up to that of all."""
    settings = wanted(
        table(tmp_path / "t.jsonl", reviews(240)),
        data={"eval_fraction": 0.4},
        train={"max_steps": 12, "guard": {"enabled": False}},
    )
    _, folder, _, _ = carry_out(settings, tmp_path / "run")
    scores = json.loads((folder.path / "scores.json").read_text("utf-8"))
    parts = [part for part in scores["slices"] if part["by"] == "class"]
    total = sum(part["count"] for part in parts)
    mean = sum(part["count"] * part["scores"]["accuracy"] for part in parts) / total
    assert mean == pytest.approx(scores["score"]["accuracy"], abs=1e-9)
