"""Summaries survive their JSON; verdicts say plainly whether the model is worth its cost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_run import sample_run

from litebert.errors import CheckpointError
from litebert.recipes.summary import BaselineScore, Curve, RunSummary, SeedScore
from litebert.recipes.verdict import format_score, judge, readable, score_noise


def with_scores(model, majority=None, tfidf=None, metric="accuracy", evaluated=10_000):
    baselines = tuple(
        BaselineScore(name=name, method="m", scores={metric: value}, seconds=0)
        for name, value in (("majority", majority), ("tfidf", tfidf))
        if value is not None
    )
    return sample_run(2).model_copy(
        update={"scores": {metric: model}, "metric": metric, "baselines": baselines,
                "evaluated": evaluated, "seeds": ()}
    )  # fmt: skip


@pytest.mark.parametrize("classes", [2, 8])
def test_a_summary_survives_its_json(classes):
    run = sample_run(classes)
    assert RunSummary.from_json(run.to_json()) == run
    assert run.baseline("tfidf") is run.baselines[1] and run.baseline("none") is None


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_foreign_json_is_refused(text, tmp_path):
    with pytest.raises(CheckpointError, match="not a run summary"):
        RunSummary.from_json(text, path=tmp_path / "summary.json")


def test_a_summary_holds_no_nan():
    with pytest.raises(ValueError, match="finite"):
        sample_run(2, scores={"accuracy": float("nan")})


def test_curves_leave_out_what_is_not_finite():
    curve = Curve.of([(1, 0.5), (2, float("nan")), (3, float("inf")), (4, 0.25)])
    assert (curve.steps, curve.values) == ((1, 4), (0.5, 0.25))
    with pytest.raises(ValueError, match="2 steps for 1 values"):
        Curve(steps=(1, 2), values=(0.5,))


@pytest.mark.parametrize(
    ("run", "level", "words"),
    [
        (with_scores(0.9, 0.5, 0.8), "good", "Beats the baselines"),
        (with_scores(0.81, 0.5, 0.80, evaluated=100), "unclear", "within the noise"),
        (with_scores(0.8, 0.5, 0.8), "bad", "No better than a bag of words"),
        (with_scores(0.7, 0.5, 0.8), "bad", "Loses to a bag of words"),
        (with_scores(0.5, 0.5, 0.8), "bad", "Learned nothing useful"),
        (with_scores(0.9), "unknown", "Not compared"),
        (with_scores(1.0, 2.0, 1.5, metric="mse"), "good", "Beats the baselines"),
        (with_scores(3.0, 2.0, 1.5, metric="mse"), "bad", "Learned nothing useful"),
        (with_scores(0.4, 0.0, 0.39, metric="matthews", evaluated=50), "good", "Beats"),
        (with_scores(0.9, 0.5).model_copy(update={"scores": {}}), "unknown", "No score"),
    ],
)
def test_verdicts(run, level, words):
    verdict = judge(run)
    assert verdict.level == level and words in verdict.headline
    assert verdict.sentence.endswith(".")


def test_the_advice_fits_the_start():
    run = with_scores(0.7, 0.5, 0.8)
    assert "start from pretrained weights" in judge(run).sentence
    model = run.model.model_copy(update={"is_pretrained": True})
    assert "train longer" in judge(run.model_copy(update={"model": model})).sentence


def test_a_lead_of_one_seed_alone_is_luck():
    run = with_scores(0.9, 0.5, 0.8)
    seeds = [SeedScore(seed=i, score=score) for i, score in enumerate((0.9, 0.78, 0.79))]
    verdict = judge(run.model_copy(update={"seeds": tuple(seeds)}))
    assert (verdict.level, verdict.headline) == ("unclear", "Ahead with the best seed only")
    assert "median of 3 seeds gets 79.0 %" in verdict.sentence
    steady = [*seeds[:2], SeedScore(seed=2, score=0.85)]
    assert judge(run.model_copy(update={"seeds": tuple(steady)})).level == "good"


def test_a_baseline_without_the_main_score_is_not_compared():
    run = with_scores(0.9, 0.5)
    other = BaselineScore(name="tfidf", method="m", scores={"f1_macro": 0.1}, seconds=0)
    run = run.model_copy(update={"baselines": (*run.baselines, other)})
    assert judge(run).level == "good" and "no such score" in judge(run).sentence
    alone = run.model_copy(update={"baselines": (other,)})
    assert judge(alone).level == "unknown"


def test_numbers_are_written_as_people_write_them():
    assert format_score("accuracy", 0.9512) == "95.1 %"
    assert format_score("matthews", 0.5) == "0.500"
    assert format_score("mse", 1.25) == "1.250"
    assert readable("f1_macro") == "F1 macro" and readable("ece") == "Calibration error"
    assert score_noise("accuracy", 0.5, 100) == pytest.approx(0.098)
    assert score_noise("accuracy", 1.0, 100) > 0
    assert score_noise("pearson", 0.5, 100) is None and score_noise("accuracy", 0.5, 0) is None
