"""Ranges: how they are read, what they change, and what is refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from litebert.errors import SettingsError
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.tune.ranges import choose_space, default_ranges
from litebert.recipes.tune.settings import SearchSettings, TuneSettings, training_part
from litebert.recipes.tune.space import NAMED, read_space
from litebert.recipes.tune.vary import check_space, varied
from litebert.settings import build_settings, dump_toml, load_settings


def write(path: Path, rows: int = 80) -> Path:
    lines = [f"the lamp {i} is {'fine' if i % 2 else 'dim'},{i % 2}" for i in range(rows)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def told(path: Path, **more: Any) -> FinetuneSettings:
    values = {"data": {"train": str(path)}, "model": {"source": "tiny", "vocab_size": 80}} | more
    return build_settings(FinetuneSettings, values)


def test_toml_with_quoted_plain_and_dotted_names() -> None:
    table = tomllib.loads(
        "learning_rate = {low = 1e-5, high = 5e-5}\nbatch_size = [16, 32]\n"
        '"train.adam_beta2" = [0.98, 0.999]\nmodel.config.hidden_act = ["relu", "gelu"]\n'
        "depth = {low = 2, high = 8, step = 2}\n"
    )
    space = {dimension.name: dimension for dimension in read_space(table)}
    assert list(space) == [
        "learning_rate", "batch_size", "train.adam_beta2", "model.config.hidden_act", "depth"
    ]  # fmt: skip
    rate, depth = space["learning_rate"], space["depth"]
    assert (rate.low, rate.high, rate.is_log, rate.is_integer) == (1e-5, 5e-5, True, False)
    assert (depth.is_integer, depth.step, depth.is_log) == (True, 2.0, False)
    assert depth.ends() == (2, 8) and all(isinstance(end, int) for end in depth.ends())
    assert space["batch_size"].ends() == (16, 32)
    assert rate.describe() == "1e-05 to 5e-05 by ratio"
    assert depth.describe() == "2 to 8 in steps of 2"
    assert space["model.config.hidden_act"].describe() == "relu, gelu"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"learning_rat": [1, 2]}, "did you mean 'learning_rate'"),
        ({"data.train": ["a", "b"]}, "cannot vary"),
        ({"model.config.vocab_size": [100, 200]}, "cannot vary"),
        ({"train.guard.enabled": [True, False]}, "cannot vary"),
        ({"model.config.litebert": [1, 2]}, "cannot vary"),
        ({"dropout": 0.1}, "expected a list of values"),
        ({"dropout": [0.1]}, "two different values"),
        ({"dropout": [0.1, 0.1]}, "two different values"),
        ({"dropout": [0.1, [0.2]]}, "no word, number"),
        ({"dropout": {"low": 0.1, "hi": 0.2}}, "no key 'hi'"),
        ({"dropout": {"low": 0.1}}, "both given"),
        ({"dropout": {"low": 0.3, "high": 0.2}}, "low must be below high"),
        ({"dropout": {"low": 0, "high": 0.2, "log": True}}, "above 0"),
        ({"dropout": {"low": 0, "high": 0.2, "log": 1}}, "true or false"),
        ({"dropout": {"low": 0, "high": 0.2, "step": 0.5}}, "step must be"),
        ({"dropout": {"low": True, "high": 2}}, "finite number"),
        ({"dropout": {"low": 0, "high": float("inf")}}, "finite number"),
        ({"dropout": {"low": "a", "high": 2}}, "finite number"),
        ({"dropout": [0, 0.1], "model.config.hidden_dropout_prob": [0, 0.1]}, "both set"),
    ],
)  # fmt: skip
def test_a_wrong_space_is_refused(table: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        read_space(table)


def test_default_ranges_follow_the_paper_and_the_width(tmp_path: Path, model_dir: Path) -> None:
    path = write(tmp_path / "t.csv")
    scratch = make_plan(told(path))
    ranges = default_ranges(scratch)
    assert ranges["batch_size"] == [8, 16]  # 68 rows leave no four batches of 32
    assert ranges["hidden_size"] == [64, 128, 256] and ranges["depth"] == [1, 2, 4]
    assert ranges["sharing"] == ["all", "attention_only", "ffn_only", "none"]
    assert set(ranges) <= set(NAMED)
    narrow = make_plan(told(path, model={"source": str(model_dir)}))
    known = default_ranges(narrow)
    assert known["learning_rate"] == {"low": 2e-4, "high": 3e-3}
    assert set(known) == {"learning_rate", "batch_size", "warmup", "dropout", "classifier_dropout"}


def test_what_is_told_does_not_vary_and_is_not_forgotten(tmp_path: Path) -> None:
    wanted = told(
        write(tmp_path / "t.csv"),
        model={"source": "tiny", "vocab_size": 80,
               "config": {"hidden_size": 32, "num_attention_heads": 2, "litebert": {"sharing": "none"}}},
        train={"learning_rate": 1e-3},
    )  # fmt: skip
    plan = make_plan(wanted)
    names = {dimension.name for dimension in choose_space(TuneSettings(), plan, wanted)}
    assert not names & {"learning_rate", "hidden_size", "sharing"}
    assert {"dropout", "warmup", "embedding_size"} <= names
    asked = TuneSettings(space={"learning_rate": {"low": 1e-4, "high": 1e-3}})
    assert [d.name for d in choose_space(asked, plan, wanted)] == ["learning_rate"]


def test_a_space_without_anything_left(tmp_path: Path, model_dir: Path) -> None:
    wanted = told(
        write(tmp_path / "t.csv"),
        model={"source": str(model_dir), "config": {
            "hidden_dropout_prob": 0.0, "classifier_dropout_prob": 0.1}},
        train={"learning_rate": 1e-3, "batch_size": 8, "warmup_fraction": 0.1},
    )  # fmt: skip
    with pytest.raises(SettingsError, match="nothing is left to search"):
        choose_space(TuneSettings(), make_plan(wanted), wanted)


def test_pretrained_weights_keep_their_shape(tmp_path: Path, model_dir: Path) -> None:
    wanted = told(write(tmp_path / "t.csv"), model={"source": str(model_dir)})
    plan = make_plan(wanted)
    for name in ("hidden_size", "sharing", "embedding_size", "model.config.intermediate_size"):
        choices = ["all", "none"] if name == "sharing" else [32, 64]
        with pytest.raises(SettingsError, match="changes the shape of the pretrained weights"):
            choose_space(TuneSettings(space={name: choices}), plan, wanted)
    free = TuneSettings(space={"dropout": [0.0, 0.1], "depth": [1, 2]})
    assert len(choose_space(free, plan, wanted)) == 2  # one shared block runs at any depth


def test_a_trial_changes_settings_and_nothing_else(tmp_path: Path) -> None:
    wanted = told(write(tmp_path / "t.csv"), train={"epochs": 2.0}, num_seeds=2)
    base = make_plan(wanted)
    space = read_space(
        {"learning_rate": {"low": 1e-4, "high": 1e-2}, "hidden_size": [64, 96], "dropout": [0.0, 0.2],
         "sharing": ["all", "none"], "batch_size": [8, 16]}
    )  # fmt: skip
    values = {
        "learning_rate": 3e-3, "hidden_size": 96, "dropout": 0.2, "sharing": "none", "batch_size": 8
    }  # fmt: skip
    plan = varied(base, wanted, space, values, for_trial=True)
    assert plan.train is base.train and plan.eval is base.eval  # encoded once
    config = plan.model.config
    assert (config.hidden_size, config.num_attention_heads, config.intermediate_size) == (
        96,
        3,
        384,
    )
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.2
    assert config.litebert.sharing == "none"
    train = plan.settings.train
    assert (train.learning_rate, train.batch_size, train.epochs) == (3e-3, 8, 2.0)
    assert train.guard.restarts == 0 and plan.num_seeds == 2
    assert not plan.settings.has_baselines
    # As written to best.toml, the settings make the same model and training.
    final = varied(base, wanted, space, values)
    assert final.settings.has_baselines and final.settings.train.guard.restarts == 2
    (tmp_path / "best.toml").write_text(dump_toml(final.settings))
    again = make_plan(load_settings(FinetuneSettings, tmp_path / "best.toml"))
    assert again.model.config == config
    assert again.settings.train == final.settings.train


def test_ranges_that_make_no_model_are_said_before_time_is_spent(tmp_path: Path) -> None:
    wanted = told(write(tmp_path / "t.csv"))
    base = make_plan(wanted)
    with pytest.raises(SettingsError, match=r"tune.space.dropout = 1.5"):
        check_space(base, wanted, read_space({"dropout": [0.0, 1.5]}))
    with pytest.raises(SettingsError, match=r"tune.space.sharing = alll"):
        check_space(base, wanted, read_space({"sharing": ["all", "alll"]}))
    with pytest.raises(SettingsError, match=r"tune.space.batch_size = 0: train.batch_size"):
        check_space(base, wanted, read_space({"batch_size": {"low": 0, "high": 8}}))
    with pytest.raises(SettingsError, match=r"tune.space.learning_rate = 2"):
        check_space(base, wanted, read_space({"learning_rate": [1e-3, 2.0]}))


def test_the_training_part_knows_what_was_told() -> None:
    values = {"data": {"train": "t.csv"}, "train": {"epochs": 2.0}, "tune": {"trials": 3}}
    search = build_settings(SearchSettings, values)
    part = training_part(search)
    assert type(part) is FinetuneSettings
    assert part.train.model_fields_set == {"epochs"}
    with pytest.raises(SettingsError, match="did you mean 'trials'"):
        build_settings(SearchSettings, {"data": {"train": "t"}, "tune": {"trial": 3}})
