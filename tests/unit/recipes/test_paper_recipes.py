"""The paper's settings as data: exact, told values go over them, and they survive the run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from litebert.cli import app
from litebert.errors import CheckpointError, SettingsError
from litebert.recipes.finetune.paper import PAPER_RECIPES, expected_lines, with_recipe
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.settings import build_settings, dump_toml, load_settings

TABLE = """
cola     1e-5  16  0.0  5336  320  512
stsb     2e-5  16  0.0  3598  214  512
sst2     1e-5  32  0.0 20935 1256  512
mnli     3e-5 128  0.0 10000 1000  512
qnli     1e-5  32  0.0 33112 1986  512
qqp      5e-5 128  0.1 14000 1000  512
rte      3e-5  32  0.1   800  200  512
mrpc     2e-5  32  0.0   800  200  512
wnli     2e-5  16  0.1  2000  250  512
squad    5e-5  48  0.0  3649  365  384
squad_v2 3e-5  48  0.0  8144  814  512
race     2e-5  32  0.1 12000 1000  512
race-v2  1e-5  32  0.0 12000 1000  512
"""
"""Task, rate, batch, dropout, steps, warm-up steps, length (paper, Table 14, and the README on v2)."""


def settings(recipe: str | None, **sections: Any) -> FinetuneSettings:
    values = {"data": {"train": "t.csv"}} | sections
    return build_settings(FinetuneSettings, values | ({"recipe": recipe} if recipe else {}))


def test_every_row_of_the_table() -> None:
    rows = [line.split() for line in TABLE.strip().splitlines()]
    assert sorted(PAPER_RECIPES) == sorted(f"paper/{row[0]}" for row in rows)
    for name, rate, batch, dropout, steps, warmup, length in rows:
        found = with_recipe(settings(f"paper/{name}"))
        train = found.train
        assert (train.learning_rate, train.batch_size) == (float(rate), int(batch))
        assert train.max_steps == int(steps)
        assert train.warmup_fraction * int(steps) == pytest.approx(int(warmup))
        assert (train.adam_epsilon, train.weight_decay, train.max_grad_norm) == (1e-6, 0.01, 1.0)
        assert not train.bias_correction and train.optimizer == "adamw"
        assert found.model.config == {
            "hidden_dropout_prob": float(dropout),
            "attention_probs_dropout_prob": float(dropout),
            "classifier_dropout_prob": 0.1,
        }
        assert found.data.max_length == int(length)


def test_without_a_recipe_nothing_changes() -> None:
    plain = settings(None)
    assert with_recipe(plain) is plain


def test_told_values_go_over_the_recipe() -> None:
    found = with_recipe(
        settings(
            "paper/rte",
            data={"train": "t.csv", "max_length": 64},
            train={"learning_rate": 1e-3, "epochs": 2.0},
            model={"config": {"hidden_dropout_prob": 0.3}},
        )
    )
    assert (found.train.learning_rate, found.train.batch_size) == (1e-3, 32)
    assert (found.train.epochs, found.train.max_steps) == (2.0, None)
    assert found.train.warmup_fraction == 0.25
    assert found.model.config["hidden_dropout_prob"] == 0.3
    assert found.model.config["attention_probs_dropout_prob"] == 0.1
    assert found.data.max_length == 64
    of_records = with_recipe(settings("paper/race", task={"max_length": 80}))
    assert of_records.data.max_length is None


def test_lengths_keep_to_the_positions_of_the_model(tmp_path: Path, make_model: Any) -> None:
    folder = make_model("binary")
    assert with_recipe(settings("paper/rte", model={"source": str(folder)})).data.max_length == 64
    told = {"config": {"max_position_embeddings": 40}}
    assert with_recipe(settings("paper/rte", model=told)).data.max_length == 40
    with pytest.raises(CheckpointError):
        with_recipe(settings("paper/rte", model={"source": str(tmp_path)}))


def test_a_recipe_is_stable_in_the_run_folder(tmp_path: Path) -> None:
    found = with_recipe(settings("paper/sst2", train={"epochs": 1.0}))
    (tmp_path / "config.toml").write_text(dump_toml(found), encoding="utf-8")
    stored = load_settings(FinetuneSettings, tmp_path / "config.toml")
    assert with_recipe(stored) == stored == found


def test_wrong_names() -> None:
    with pytest.raises(
        SettingsError, match="unknown recipe 'paper/mnil'; did you mean 'paper/mnli'"
    ):
        with_recipe(settings("paper/mnil"))
    with pytest.raises(SettingsError, match="is a str"):
        with_recipe(settings("string:digits"))


def test_what_to_expect() -> None:
    (base,) = expected_lines("paper/mnli", 768)
    assert base == "recipe paper/mnli: published accuracy on dev of base 81.6 to 85.0"
    scores, start = expected_lines("paper/rte", 4096)
    assert "xxlarge 89.2" in scores and "from a model trained on MNLI" in start
    unknown, *_ = expected_lines("paper/rte", 1024)
    assert unknown == "recipe paper/rte: there is no published score of the size large"
    every, width = expected_lines("paper/race", 128)
    assert "base 64.0, large 68.5, xlarge 74.8, xxlarge 82.3 to 86.5" in every
    assert "128 wide" in width and "compare with a run without --recipe" in width


def test_the_plan_says_it(tmp_path: Path) -> None:
    rows = "".join(f"{'good' if i % 2 else 'poor'} lamp number {i},{i % 2}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("text,label\n" + rows)
    told = ("--recipe", "paper/sst2", "--epochs", "1", "--set", "model.vocab_size=64", "--dry-run")
    result = CliRunner().invoke(app, ["train", str(tmp_path / "t.csv"), *told])
    assert result.exit_code == 0, result.output
    assert "learning rate 1e-05" in result.stdout
    assert (
        "note      recipe paper/sst2: published accuracy on dev of base 90.3 to 92.6"
        in result.stdout
    )
