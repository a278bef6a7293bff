"""What is worked out before training: columns, split, length, model, defaults."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.recipes.finetune.defaults import default_num_seeds
from litebert.recipes.finetune.plan import Plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.settings import build_settings, dump_toml, load_settings

THINGS = ("kettle", "lamp", "chair", "radio", "book", "parcel", "ladder", "carpet")


def write(path: Path, labels: tuple[str, ...] = ("good", "bad"), rows: int = 60) -> Path:
    rng = random.Random(1)
    lines = [
        f"the {rng.choice(THINGS)} number {i} is {labels[i % len(labels)]},{labels[i % len(labels)]}"
        for i in range(rows)
    ]
    path.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    return path


def plan_of(train: Path, *overrides: str, **data: Any) -> Plan:
    values = {"data": {"train": str(train)} | data, "model": {"source": "tiny", "vocab_size": 100}}
    return make_plan(build_settings(FinetuneSettings, values, overrides=overrides))


def test_a_part_is_held_out_and_no_row_is_lost(tmp_path: Path) -> None:
    plan = plan_of(write(tmp_path / "t.csv"))
    texts = [example.text for example in (*plan.train.examples, *plan.eval.examples)]
    assert len(texts) == len(set(texts)) == 60
    assert len(plan.eval.examples) == 9
    assert {example.label for example in plan.eval.examples} == {"good", "bad"}
    assert (plan.task.kind, plan.task.metric, plan.task.labels) == (
        "binary", "accuracy", ("bad", "good")
    )  # fmt: skip
    again = plan_of(tmp_path / "t.csv")
    assert [e.text for e in again.eval.examples] == [e.text for e in plan.eval.examples]
    other = plan_of(tmp_path / "t.csv", "data.split_seed=1")
    assert [e.text for e in other.eval.examples] != [e.text for e in plan.eval.examples]


def test_the_plan_says_why(tmp_path: Path) -> None:
    lines = plan_of(write(tmp_path / "t.csv", ("a", "b", "c"))).describe()
    text = "\n".join(lines)
    for word in ("text      text", "label     label: a, b, c", "multiclass", "because", "held out",
                 "tokens", "depths", "learning rate"):  # fmt: skip
        assert word in text


def test_an_evaluation_file_is_not_split_from(tmp_path: Path) -> None:
    evaluation = write(tmp_path / "e.csv", rows=20)
    plan = plan_of(write(tmp_path / "t.csv"), eval=str(evaluation))
    assert (len(plan.train.examples), len(plan.eval.examples)) == (60, 20)
    assert [role for role, _, _ in plan.parts()] == ["train", "eval"]
    write(tmp_path / "e.csv", ("good", "unheard"), rows=20)
    with pytest.raises(DataError, match="unheard"):
        plan_of(tmp_path / "t.csv", eval=str(evaluation))


def test_bad_rows_stop_or_are_counted(tmp_path: Path) -> None:
    train, evaluation = write(tmp_path / "t.csv"), write(tmp_path / "e.csv", rows=20)
    for path in (train, evaluation):
        with path.open("a", encoding="utf-8") as file:
            file.write(",good\n")
    with pytest.raises(DataError, match=r"t\.csv:62"):
        plan_of(train)
    plan = plan_of(train, eval=str(evaluation), on_bad_row="skip")
    assert [(row.path.name, row.line) for row in plan.skipped] == [("t.csv", 62), ("e.csv", 22)]
    assert "2 skipped" in "\n".join(plan.describe())


@pytest.mark.parametrize("name", ["t.csv", "e.csv"])
def test_no_usable_row_is_an_error(tmp_path: Path, name: str) -> None:
    train, evaluation = write(tmp_path / "t.csv"), write(tmp_path / "e.csv", rows=20)
    (tmp_path / name).write_text("text,label\n,good\n,bad\n,good\n,bad\n")
    with pytest.raises(DataError):
        plan_of(train, eval=str(evaluation), on_bad_row="skip", text_columns=["text"],
                label_column="label")  # fmt: skip


def test_the_length_covers_nearly_all(tmp_path: Path) -> None:
    plan = plan_of(write(tmp_path / "t.csv"))
    longest = max(plan.lengths)
    assert sum(plan.lengths.values()) == len(plan.train.examples)
    assert longest <= plan.task.max_length < longest + 16
    assert plan.truncated_fraction == 0
    short = plan_of(tmp_path / "t.csv", max_length=8)
    assert short.task.max_length == 8
    assert short.truncated_fraction == 1.0
    assert max(len(example.ids) for example in short.train.encoded) == 8
    with pytest.raises(SettingsError, match="give at most"):
        plan_of(tmp_path / "t.csv", max_length=99_999)


def test_a_sample_is_the_same_each_time(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    first, second = (plan_of(path, max_examples=20) for _ in range(2))
    assert len(first.train.examples) == 20
    assert len(first.eval.examples) == 9
    assert [e.text for e in first.train.examples] == [e.text for e in second.train.examples]


def test_numbers_and_pairs(tmp_path: Path) -> None:
    rng = random.Random(2)
    lines = ["sentence1\tsentence2\tscore"]
    lines += [
        f"the {rng.choice(THINGS)}\ta {rng.choice(THINGS)}\t{rng.random():.2f}" for _ in range(40)
    ]
    (tmp_path / "t.tsv").write_text("\n".join(lines))
    plan = plan_of(tmp_path / "t.tsv")
    assert (plan.task.kind, plan.task.is_pair, plan.task.labels) == ("regression", True, ())
    assert set(plan.train.encoded[0].type_ids.tolist()) == {0, 1}
    assert plan.train.labels().dtype.kind == "f"


def test_what_is_told_wins_over_the_defaults(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    told = ("train.epochs=7", "train.learning_rate=0.01", "train.guard.restarts=0")
    train = plan_of(path, *told).settings.train
    assert (train.epochs, train.learning_rate, train.guard.restarts) == (7.0, 0.01, 0)
    default = plan_of(path).settings.train
    assert default.guard.restarts > 0
    assert default.learning_rate > 1e-4  # from scratch


def test_few_rows_are_trained_on_three_times_unless_told(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    plan = plan_of(path)
    assert plan.num_seeds == plan.settings.num_seeds == 3
    assert "training  3 x" in "\n".join(plan.describe())
    assert "for 3 seeds (--seeds 1 trains once)" in "\n".join(plan.estimate())
    once = plan_of(path, "num_seeds=1")
    assert once.num_seeds == 1
    assert "seeds" not in "\n".join(once.estimate())
    assert [default_num_seeds(None, rows) for rows in (9_999, 10_000)] == [3, 1]
    assert default_num_seeds(5, 1_000_000) == 5


def test_resolved_settings_make_the_same_plan(tmp_path: Path) -> None:
    plan = plan_of(write(tmp_path / "t.csv"))
    (tmp_path / "config.toml").write_text(dump_toml(plan.settings))
    again = make_plan(load_settings(FinetuneSettings, tmp_path / "config.toml"))
    assert again.settings == plan.settings
    assert again.num_steps == plan.num_steps
    assert again.task == plan.task


def test_a_folder_to_start_from(tmp_path: Path, model_dir: Path) -> None:
    path = write(tmp_path / "t.csv")
    plan = plan_of(path, f"model.source={model_dir}")
    assert plan.model.folder == model_dir
    assert plan.model.config.hidden_size == 32
    assert plan.model.config.id2label == {0: "bad", 1: "good"}
    assert plan.settings.train.learning_rate == 1e-3  # pretrained and narrow
    assert plan.settings.train.weight_decay < 0.05  # from scratch it is 0.05
    with pytest.raises(CheckpointError, match="did you mean 'tiny'"):
        plan_of(path, "model.source=tinny")
    with pytest.raises(CheckpointError, match="no such folder"):
        plan_of(path, f"model.source={tmp_path / 'none'}")


def test_the_estimate_is_in_lines(tmp_path: Path) -> None:
    lines = plan_of(write(tmp_path / "t.csv")).estimate()
    assert lines[0].startswith("estimate  ")
    assert lines[1].startswith("memory    ")


@pytest.mark.parametrize(
    "rows",
    [["one text,good", "other text,bad"], ["same text,good", "other same,bad"] * 30],
    ids=["two rows", "two texts many times"],
)
def test_training_on_one_class_is_refused(tmp_path: Path, rows: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="left to train on have the one label"):
        plan_of(path)


def test_labels_without_an_example_to_score_on_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    path.write_text(path.read_text(encoding="utf-8") + "a strange one,rare\n", encoding="utf-8")
    assert "1 of 3 labels have no example to score on" in plan_of(path).notes
    assert any(note.startswith("9 of 60 examples (15.0%") for note in plan_of(write(path)).notes)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.schedule=nope", "unknown schedule"),
        ("train.schedule=math:sqrt", "must be a function"),
        ("train.optimizer=nope", "unknown optimizer"),
        ("model.config.litebert=3", "must be a table"),
        ("model.config.litebert.sharing=nope", "unknown sharing pattern"),
        ("model.config.self=3", "self"),
        ("model.config.hidden_size=7", "no multiple of"),
        ("train.epochs=1e300", "train.epochs"),
        ("train.epochs=inf", "train.epochs"),
        ("train.batch_size=1000000000000", "train.batch_size"),
    ],
)
def test_settings_that_make_no_run_are_refused_before_it(
    tmp_path: Path, override: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        plan_of(write(tmp_path / "t.csv"), override)
    assert len(str(caught.value)) < 600


def test_options_of_the_model_reach_it(tmp_path: Path) -> None:
    plan = plan_of(write(tmp_path / "t.csv"), "model.config.litebert.sharing=none")
    assert plan.model.config.litebert.sharing == "none"
    assert plan.model.config.litebert.head == "sequence"
