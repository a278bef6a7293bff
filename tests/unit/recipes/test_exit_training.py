"""[exits] through the recipe: plan, training, folders, going on from them, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.checkpoint.folder import load_model
from litebert.errors import SettingsError
from litebert.recipes.distill.settings import DistillRun
from litebert.recipes.finetune.job import open_run, start_run
from litebert.recipes.finetune.run import new_model, run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan, work_of
from litebert.settings import build_settings
from litebert.train.exit_loss import ExitLoss
from litebert.train.random_depth import RandomDepth
from litebert.train.stop import StopRequest

WORDS = ("fine", "late", "dented")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    rows = [f"parcel number {n} was {WORDS[n % 3]},{WORDS[n % 3]}" for n in range(45)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def settings(train: Path, model: Path | str, *told: str, **data: Any) -> FinetuneSettings:
    values = {
        "data": {"train": str(train)} | data,
        "model": {"source": str(model)},
        "train": {"epochs": 2.0, "batch_size": 16, "precision": "fp32", "threads": 1,
                  "guard": {"enabled": False}},
        "num_seeds": 1,
        "has_baselines": False,
    }  # fmt: skip
    return build_settings(FinetuneSettings, values, overrides=told)


def carry_out(wanted: FinetuneSettings, out: Path) -> Any:
    plan = make_plan(wanted)
    folder = start_run(plan, out, "litebert train t.csv")
    run_plan(plan, folder, on_event=lambda _: None, stop=StopRequest())
    return folder


def test_heads_are_trained_saved_and_dropped_where_they_are_not_trained(
    table: Path, model_dir: Path, tmp_path: Path
) -> None:
    wanted = settings(table, model_dir, "exits.heads=true", "exits.distill=0.5")
    plan = make_plan(wanted)
    assert isinstance(work_of(plan).step_loss, ExitLoss)
    line = next(line for line in plan.describe() if line.startswith("exits"))
    assert (
        "a classifier at each depth from 1 to 2, weighted by depth; taught by the deepest" in line
    )
    folder = carry_out(wanted, tmp_path / "run")
    _, resolved = open_run(tmp_path / "run")
    assert resolved.exits == wanted.exits
    model = load_model(folder.best)
    assert model.exits is not None
    assert model.exits.weight.any()
    further = make_plan(settings(table, folder.best))
    assert new_model(further, None).exits is None
    assert not further.model.config.litebert.exit_heads
    again = make_plan(settings(table, folder.best, "exits.heads=true"))
    kept = new_model(again, None).exits
    assert kept is not None
    assert torch.equal(kept.weight, model.exits.weight)


def test_random_depth_wraps_any_loss(table: Path, tmp_path: Path) -> None:
    plan = make_plan(settings(table, "tiny", "exits.random_depth=deep", "loss.label_smoothing=0.1"))
    assert isinstance(work_of(plan).step_loss, RandomDepth)
    assert any("deeper ones more often" in line for line in plan.describe())
    tags = tmp_path / "tags.conll"
    tags.write_text(
        "".join(f"Anna B-PER\nsings O\nsong{n} O\n\n" for n in range(30)), encoding="utf-8"
    )
    plan = make_plan(
        settings(tags, "tiny", "exits.random_depth=uniform", "exits.heads=true", task="tagging")
    )
    assert isinstance(work_of(plan).step_loss, RandomDepth)
    assert new_model(plan, None).exits is not None


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (["exits.heads=true", "exits.first_depth=9"], "first_depth is 9, but the model has"),
        (["exits.heads=true", "model.config.num_hidden_layers=1"], "two depths or more"),
        (["exits.random_depth=deep", "exits.distill=0.1"], "exits.distill is for the classifiers"),
        (["exits.random_depth=deep", "exits.depth_weights=equal"], "exits.depth_weights is for"),
        (["exits.heads=true", "train.gradient_checkpointing=true"], "would save nothing"),
        (["exits.heads=true", "loss.r_drop=1"], "the depths of one; choose one"),
        (["exits.heads=maybe"], "exits.heads"),
    ],
)
def test_what_does_not_fit_is_said_before_training(
    table: Path, told: list[str], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        make_plan(settings(table, "tiny", *told))


def test_examples_compared_with_each_other_have_one_depth(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    rows = [f"a broken lamp {n},the lamp {n} is broken" for n in range(40)]
    pairs.write_text("anchor,positive\n" + "\n".join(rows) + "\n", encoding="utf-8")
    told = settings(pairs, "tiny", "exits.random_depth=uniform", task="similarity")
    with pytest.raises(SettingsError, match=r"compares the examples of a batch with each other"):
        make_plan(told)


def test_a_student_learns_at_every_depth() -> None:
    told = {"student": {"source": "tiny"}, "distill": {"hidden": 1.0}}
    assert build_settings(DistillRun, told).exits.is_off
    run = build_settings(DistillRun, told, overrides=["exits.random_depth=deep"])
    assert run.exits.random_depth == "deep"
    for wrong in ("exits.heads=true", "exits.distill=0.5"):
        with pytest.raises(SettingsError, match="trained on labels, with `litebert train`"):
            build_settings(DistillRun, told, overrides=[wrong])
