"""A run that learns from pairs because there are few examples, and one that saves vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from litebert.errors import SettingsError
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.finetune.job import finish_run, start_run
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.loading import load
from litebert.settings import build_settings, load_settings
from litebert.train.stop import StopRequest

TINY = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32}
LOOP = {"threads": 1, "precision": "fp32", "guard": {"enabled": False}}


def carry_out(values: dict[str, Any], out: Path) -> tuple[Any, Any]:
    plan = make_plan(build_settings(FinetuneSettings, values))
    folder = start_run(plan, out, "litebert train t.csv")
    outcome = run_plan(plan, folder, on_event=lambda _: None, stop=StopRequest())
    finish_run(outcome, folder)
    return outcome, folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over pairs of texts: its folder is an encoder with mean pooling."""
    place = tmp_path_factory.mktemp("encoder")
    rows = [f"the kettle sings {n},the pot sings {n},{n % 6}" for n in range(30)]
    (place / "pairs.csv").write_text("sentence1,sentence2,score\n" + "\n".join(rows) + "\n")
    values = {
        "data": {"train": str(place / "pairs.csv"), "task": "similarity"},
        "model": {"source": "tiny", "vocab_size": 64, "config": TINY},
        "train": LOOP | {"epochs": 1.0, "batch_size": 8},
        "num_seeds": 1,
    }
    _, folder = carry_out(values, place / "run")
    return folder.path


def table(path: Path, rows: int = 24) -> Path:
    lines = [
        f"the kettle {('sings', 'broke')[n % 2]} {n},{('good', 'bad')[n % 2]}" for n in range(rows)
    ]
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    return path


def settings(data: Path, model: Path, **more: Any) -> dict[str, Any]:
    values = {"data": {"train": str(data)}, "model": {"source": str(model)}, "train": LOOP,
              "num_seeds": 2}  # fmt: skip
    return values | more


def test_vectors_are_saved_for_sentence_transformers(encoder: Path) -> None:
    for name in ("model-best", "model-last"):
        modules = json.loads((encoder / name / "modules.json").read_text())
        assert [item["path"] for item in modules] == ["", "1_Pooling", "2_Normalize"]
        pooling = json.loads((encoder / name / "1_Pooling" / "config.json").read_text())
        assert pooling["pooling_mode_mean_tokens"] and pooling["word_embedding_dimension"] == 32


def test_few_examples_are_learnt_in_pairs_and_it_is_said_why(encoder: Path, tmp_path: Path) -> None:
    data = table(tmp_path / "t.csv")
    plan: Any = make_plan(build_settings(FinetuneSettings, settings(data, encoder)))
    assert plan.is_few_shot and any("learns from pairs" in note for note in plan.notes)
    outcome, folder = carry_out(settings(data, encoder), tmp_path / "run")
    assert [seed.failure for seed in outcome.seeds] == ["", ""]
    assert outcome.chosen.scores["accuracy"] == max(s.scores["accuracy"] for s in outcome.seeds)
    predictor = load(folder.path)
    answers = predictor.predict(["the kettle sings", "the kettle broke"])
    assert {answer.label for answer in answers} <= {"good", "bad"}
    report = evaluate_folder(folder.path, EvaluationJob(data=data))
    scores = report.to_dict()["scores"]
    assert 0 <= scores["accuracy"] <= 1
    kept = [
        json.loads(line) for line in (folder.path / "predictions.jsonl").read_text().splitlines()
    ]
    again = predictor.predict([row["text"] for row in kept])
    assert [row["prediction"] for row in kept] == [answer.label for answer in again]


def test_who_tells_the_length_of_training_gets_ordinary_training(
    encoder: Path, tmp_path: Path
) -> None:
    data = table(tmp_path / "t.csv")
    for more in ({"train": LOOP | {"epochs": 2.0}}, {"few_shot": False}):
        plan: Any = make_plan(build_settings(FinetuneSettings, settings(data, encoder, **more)))
        assert not plan.is_few_shot
    many = table(tmp_path / "many.csv", 400)
    plan = make_plan(build_settings(FinetuneSettings, settings(many, encoder)))
    assert not plan.is_few_shot  # type: ignore[union-attr]


def test_few_shot_where_it_cannot_be_is_refused(encoder: Path, tmp_path: Path) -> None:
    many = table(tmp_path / "many.csv", 400)
    with pytest.raises(SettingsError, match=r"few_shot needs .* of the largest class"):
        make_plan(build_settings(FinetuneSettings, settings(many, encoder, few_shot=True)))


def test_a_stop_before_the_end_can_be_resumed(encoder: Path, tmp_path: Path) -> None:
    plan = make_plan(build_settings(FinetuneSettings, settings(table(tmp_path / "t.csv"), encoder)))
    folder = start_run(plan, tmp_path / "run", "litebert train t.csv")
    stop = StopRequest()
    stop.request()
    outcome = run_plan(plan, folder, on_event=lambda _: None, stop=stop)
    assert outcome.is_interrupted
    again: Any = make_plan(load_settings(FinetuneSettings, folder.config))
    assert again.is_few_shot, "also from the settings that the run wrote down"
    done = run_plan(again, folder, on_event=lambda _: None, stop=StopRequest(), resume=True)
    assert not done.is_interrupted and len(done.seeds) == 2
