"""Starting from a model that was trained for another task, and MNLI's second part."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.checkpoint.folder import load_model
from litebert.recipes.finetune.job import finish_run, result_lines, start_run
from litebert.recipes.finetune.run import new_model, run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.settings import build_settings
from litebert.train.stop import StopRequest

RELATIONS = ("entailment", "contradiction", "neutral")
HEAD = "index\tpromptID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
SHAPE = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32}


def mnli(folder: Path) -> Path:
    folder.mkdir()
    for name, count, place in (
        ("train", 48, "river"), ("dev_matched", 12, "river"), ("dev_mismatched", 18, "harbour")
    ):  # fmt: skip
        rows = [
            f"{i}\t{i}\tletters\tThe boat lies at the {place} {i}.\tNo boat {i % 4}.\t{r}\t{r}\n"
            for i in range(count)
            for r in [RELATIONS[i % 3]]
        ]
        (folder / f"{name}.tsv").write_text(HEAD + "".join(rows))
    return folder


def settings(data: dict[str, Any], source: str, seeds: int = 1) -> FinetuneSettings:
    values = {
        "data": data,
        "model": {"source": source} | ({} if "/" in source else {"vocab_size": 80, "config": SHAPE}),
        "train": {"epochs": 1.0, "batch_size": 16, "precision": "fp32", "threads": 1,
                  "guard": {"enabled": False}},
        "num_seeds": seeds, "has_baselines": False, "few_shot": False,
    }  # fmt: skip
    return build_settings(FinetuneSettings, values)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    place = tmp_path_factory.mktemp("mnli")
    data = {"train": str(mnli(place / "MNLI")), "task": "glue/mnli"}
    plan = make_plan(settings(data, "tiny", seeds=2))
    folder = start_run(plan, place / "run", "litebert train MNLI --task glue/mnli")
    outcome = run_plan(plan, folder, on_event=lambda _: None, stop=StopRequest())
    finish_run(outcome, folder)
    return outcome, folder


def test_mismatched_stands_beside_matched(trained: tuple[Any, Any]) -> None:
    outcome, folder = trained
    roles = [role for role, *_ in outcome.plan.parts()]
    assert roles == ["train", "eval", "mismatched"]
    stored = json.loads((folder.path / "scores.json").read_text())
    values = [seed.scores["accuracy_mismatched"] for seed in outcome.seeds]
    assert stored["further"]["accuracy_mismatched"] == {
        "seeds": values, "median": statistics.median(values)
    }  # fmt: skip
    assert stored["score"]["accuracy_mismatched"] == outcome.chosen.scores["accuracy_mismatched"]
    lines = result_lines(outcome, folder)
    (line,) = (line for line in lines if line.startswith("  mismatched"))
    assert f"(median of the seeds {statistics.median(values):.4f})" in line
    for name in ("report.html", "README.md", "data.json"):
        assert "mismatched" in (folder.path / name).read_text(), name


def other(path: Path, labels: tuple[str, ...]) -> dict[str, Any]:
    rows = [
        f"the parcel {i},came {labels[i % len(labels)]},{labels[i % len(labels)]}"
        for i in range(40)
    ]
    path.write_text("\n".join(["first,second,label", *rows]) + "\n")
    return {"train": str(path), "text_columns": ["first", "second"], "label_column": "label"}


@pytest.mark.parametrize(
    "labels", [("late", "early"), ("late", "early", "never"), RELATIONS], ids=["2", "3", "same"]
)
def test_the_encoder_goes_on_and_a_head_for_other_labels_is_new(
    trained: tuple[Any, Any], tmp_path: Path, labels: tuple[str, ...]
) -> None:
    _, folder = trained
    plan = make_plan(settings(other(tmp_path / "t.csv", labels), str(folder.path)))
    said = "\n".join(plan.describe())
    torch.manual_seed(3)
    old, new = load_model(folder.best, "sequence"), new_model(plan, None)
    for name, value in old.model.state_dict().items():
        assert torch.equal(value, new.model.state_dict()[name]), name
    before = old.heads["sequence"].state_dict()
    after = new.heads["sequence"].state_dict()
    is_kept = all(
        before[name].shape == after[name].shape and torch.equal(before[name], after[name])
        for name in before
    )
    assert is_kept == (set(labels) == set(RELATIONS))
    if len(labels) == 2:
        assert "new, untrained weights for: sequence" in said
    elif is_kept:
        assert "the head goes on from" in said and "trained for the same labels" in said
    else:
        assert (
            "the head is new and untrained: the old one was for " in said and "entailment" in said
        )
        assert not any(torch.equal(before[name], weight) for name, weight in after.items())


def test_a_number_goes_on_and_a_class_does_not(trained: tuple[Any, Any], tmp_path: Path) -> None:
    _, folder = trained
    rows = [f"the parcel {i},{i % 7 / 2}" for i in range(40)]
    (tmp_path / "n.csv").write_text("\n".join(["text,stars", *rows]) + "\n")
    data = {"train": str(tmp_path / "n.csv"), "kind": "regression", "label_column": "stars"}
    plan = make_plan(settings(data, str(folder.path)))
    assert "new, untrained weights for: sequence" in "\n".join(plan.describe())
