"""A compression step: measured before and after, refused when it loses too much, whole or not at all."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litebert.errors import CheckpointError, DegradedError, SettingsError
from litebert.recipes.compress_measure import MeasureOptions, Side, alternate, weight_bytes
from litebert.recipes.compress_report import (
    REPORT_FILE,
    StepReport,
    earlier_steps,
    score_drop,
    with_section,
)
from litebert.recipes.compress_step import StepResult, carry_files, finish_folder, run_step
from litebert.recipes.evaluate import EvaluationJob


def copied(source: Path, target: Path) -> StepResult:
    shutil.copytree(source, target)
    return StepResult({"kept": 1}, ("Nothing was changed.",))


def ruined(source: Path, target: Path) -> StepResult:
    import torch

    from litebert.checkpoint.folder import load_model, save_model

    model = load_model(source)
    with torch.no_grad():
        for parameter in model.heads.parameters():
            parameter.neg_()  # the likeliest class becomes the least likely
    save_model(model, target)
    carry_files(source, target)
    return StepResult()


@pytest.fixture
def labelled(tmp_path: Path, model_dir: Path) -> Path:
    """Texts whose labels are what the model answers, so that its accuracy is 1."""
    from litebert.recipes.predictor import Predictor

    texts = [
        f"the {a} kettle is {b}" for a in ("fine", "late", "heavy") for b in ("green", "dented")
    ]
    answers = Predictor.load(model_dir).predict(texts)
    rows = [f"{text},{answer.label}" for text, answer in zip(texts, answers, strict=True)]
    rows.append(f"the lamp is quiet,{'bad' if answers[0].label != 'bad' else 'good'}")
    path = tmp_path / "eval.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_step_is_measured_and_reported(model_dir: Path, labelled: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    options = MeasureOptions(EvaluationJob(labelled), rounds=1, threads=1, max_drop=0.0)
    report = run_step("copy", model_dir, out, copied, options)
    assert report.drop == 0.0
    assert report.before.metric == "accuracy" and report.before.examples == 7
    assert report.before.tokens_per_second > 0 and report.before.latency_ms > 0
    assert report.before.weight_bytes == report.after.weight_bytes == weight_bytes(out)
    assert report.outputs is not None and report.outputs.cosine_min == pytest.approx(1.0)
    stored = json.loads((out / REPORT_FILE).read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(report.to_dict()))
    assert stored["steps"][0]["facts"] == {"kept": 1}
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "## Compression" in card and "| weights file, MB |" in card
    assert any("7 examples of eval.csv" in line for line in report.lines())
    # A second step tells of the first, in one section.
    second = run_step("again", out, tmp_path / "smaller", copied, options)
    assert [entry["step"] for entry in second.to_dict()["steps"]] == ["copy", "again"]
    card = (tmp_path / "smaller" / "README.md").read_text(encoding="utf-8")
    assert card.count("## Compression") == 1 and "Before that, copy" in card


def test_without_data_nothing_is_scored(model_dir: Path, tmp_path: Path) -> None:
    report = run_step("copy", model_dir, tmp_path / "x", copied, MeasureOptions(rounds=1))
    assert report.drop is None and report.before.scores == {}
    assert any("Not scored" in line for line in report.lines())
    assert report.outputs is not None and report.outputs.texts == 8


def test_a_result_that_is_too_bad_is_not_written(
    model_dir: Path, labelled: Path, tmp_path: Path
) -> None:
    out = tmp_path / "ruined"
    job = EvaluationJob(labelled)
    with pytest.raises(DegradedError, match="Nothing was written") as caught:
        run_step("ruin", model_dir, out, ruined, MeasureOptions(job, rounds=1, max_drop=0.01))
    assert caught.value.allowed == 0.01 and caught.value.drop > 0.01
    assert caught.value.exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["eval.csv"]
    allowed = run_step("ruin", model_dir, out, ruined, MeasureOptions(job, rounds=1, max_drop=1.0))
    assert allowed.drop == pytest.approx(caught.value.drop)


def test_a_step_that_fails_leaves_nothing(model_dir: Path, tmp_path: Path) -> None:
    def failing(source: Path, target: Path) -> StepResult:
        target.mkdir()
        (target / "half").write_text("x")
        raise CheckpointError("no")

    with pytest.raises(CheckpointError, match="no"):
        run_step("fail", model_dir, tmp_path / "x", failing, MeasureOptions(rounds=1))
    assert not list(tmp_path.iterdir())


def test_limits_that_cannot_be_checked_are_refused(model_dir: Path, tmp_path: Path) -> None:
    job = EvaluationJob(tmp_path / "none.csv")
    for options, words in (
        (MeasureOptions(max_drop=0.01), "needs labelled data"),
        (MeasureOptions(job, max_drop=-1.0), "0 and more"),
        (MeasureOptions(job, max_drop=float("nan")), "0 and more"),
        (MeasureOptions(rounds=0), "1 and more"),
    ):
        with pytest.raises(SettingsError, match=words):
            run_step("copy", model_dir, tmp_path / "x", copied, options)


def test_places_that_are_taken_are_refused(model_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine.txt").write_text("x")
    with pytest.raises(SettingsError, match="not empty"):
        run_step("copy", model_dir, tmp_path / "x", copied, MeasureOptions(rounds=1))
    with pytest.raises(SettingsError, match="lies inside the model folder"):
        run_step("copy", model_dir, model_dir / "inner", copied, MeasureOptions(rounds=1))


SIDE = Side("a", 10, 10, 2, metric="accuracy", scores={"accuracy": 0.75}, examples=4)


def test_drop_follows_the_direction_of_the_score() -> None:
    assert score_drop(SIDE, replace(SIDE, scores={"accuracy": 0.5})) == 0.25
    low = replace(SIDE, metric="mse", scores={"mse": 1.0})
    assert score_drop(low, replace(low, scores={"mse": 3.0})) == 2.0
    with pytest.raises(SettingsError, match="no common score"):
        score_drop(SIDE, low)
    undefined = replace(SIDE, scores={"accuracy": float("nan")})
    with pytest.raises(DegradedError):
        StepReport("x", SIDE, undefined, None, 1, max_drop=1.0).check()


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"steps": 3}', '{"steps": [1, "x", null]}', '{"steps": [{}, {"step": 1}]}'],
)
def test_damaged_reports_of_earlier_steps_do_no_harm(content: str, tmp_path: Path) -> None:
    (tmp_path / REPORT_FILE).write_text(content)
    report = StepReport("x", SIDE, SIDE, None, 1, earlier=earlier_steps(tmp_path))
    assert "## Compression" in report.section()


def test_text_of_a_report_is_never_markup(tmp_path: Path) -> None:
    entry: dict[str, Any] = StepReport("<script>", SIDE, SIDE, None, 1).entry()
    (tmp_path / REPORT_FILE).write_text(json.dumps({"steps": [entry]}))
    report = StepReport("x", SIDE, SIDE, None, 1, earlier=earlier_steps(tmp_path), data="[a](b)")
    assert "<script>" not in report.section() and "[a](b)" not in report.section()


def test_the_section_takes_the_place_of_an_older_one() -> None:
    report = StepReport("x", SIDE, SIDE, None, 1)
    card = "---\nlicense: mit\n---\n\n# M\n\n## Compression\n\nold \\1 text\n\n## Limits\n\nnone\n"
    found = with_section(card, report)
    assert "old" not in found and found.startswith("---\nlicense: mit")
    assert found.index("## Compression") < found.index("## Limits\n\nnone")
    assert with_section(found, report) == found
    assert with_section("", report).startswith("## Compression")


def test_runs_take_turns() -> None:
    order: list[str] = []
    times = alternate([lambda: order.append("a"), lambda: order.append("b")], 2)
    assert order == list("ababab") and len(times) == 2


def test_shards_count_as_weights(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_bytes(b"12")
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"345")
    assert weight_bytes(tmp_path) == 5


def test_files_beside_the_weights_are_carried_over(model_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        carry_files(model_dir, tmp_path)
    assert (tmp_path / "task.json").read_bytes() == (model_dir / "task.json").read_bytes()


def test_a_folder_that_a_step_wrote_itself_can_be_finished(model_dir: Path, tmp_path: Path) -> None:
    after = tmp_path / "student"
    copied(model_dir, after)
    report = finish_folder("distill", model_dir, after, StepResult(), MeasureOptions(rounds=1))
    assert report.after.name == "student" and (after / REPORT_FILE).exists()
