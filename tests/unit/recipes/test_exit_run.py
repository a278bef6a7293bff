"""Exits in prediction: the same answers as one by one, fewer tokens, and the command that chooses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from litebert.checkpoint.folder import load_model, save_model
from litebert.cli import app
from litebert.compress.exits.candidates import Setting, simulate
from litebert.errors import SettingsError
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.exit_run import ExitRun, answers_of_all_depths, set_exit
from litebert.recipes.exits.report import write_result
from litebert.recipes.exits.run import ExitJob, find_exits
from litebert.recipes.predictor import Predictor
from litebert.tasks.base import load_task
from litebert.tasks.exit_rules import ExitRule

ATOL = 1e-5
"""Float32 sums in another order."""
DEPTHS = 5
WORDS = ("fine", "broken", "lovely", "late", "dented", "quiet", "heavy", "green")
THINGS = ("kettle", "lamp", "chair", "parcel")
TEXTS = [f"the {WORDS[n % 8]} {THINGS[n % 4]} is {' '.join(WORDS[: n % 7])}" for n in range(24)]
RULES = ["confidence=0.6,first=2", "patience=1", "entropy=0.8"]


@pytest.fixture(scope="module")
def folders(make_model: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of each kind of label, with exit heads that differ."""
    found: dict[str, Path] = {}
    for kind in ("multiclass", "multilabel", "regression"):
        source = make_model(kind)
        model = load_model(
            source,
            changes={"num_hidden_layers": DEPTHS, "litebert": {"exit_heads": True}},
            allow_new_head=True,
        )
        torch.manual_seed(3)
        with torch.no_grad():
            model.exits.weight.normal_(std=2.0)
            for weight in model.heads.parameters():
                weight.normal_(std=0.5)
        found[kind] = tmp_path_factory.mktemp("exits") / kind
        predictor = Predictor.load(source)
        save_model(model, found[kind], predictor.tokenizer, load_task(source).to_json())
    return found


def encoded(predictor: Predictor) -> list[Any]:
    from litebert.data.examples import Example

    task: Any = predictor.required_task
    examples = [Example(text, None, None, Path("t"), n) for n, text in enumerate(TEXTS)]
    return [task.encode(e, predictor.tokenizer, index=n) for n, e in enumerate(examples)]


@pytest.mark.parametrize("kind", ["multiclass", "multilabel", "regression"])
def test_together_as_alone_and_as_the_table_says(folders: dict[str, Path], kind: str) -> None:
    predictor = Predictor.load(folders[kind])
    examples = encoded(predictor)
    lengths = np.asarray([len(example) for example in examples])
    table = answers_of_all_depths(predictor.model, examples, batch_tokens=100)
    rules = ["patience=1,tolerance=0.5", "patience=2"] if kind == "regression" else RULES
    left: set[int] = set()
    for text in rules:
        run = set_exit(predictor, folders[kind], exit_when=text)
        assert run is not None
        together = np.concatenate(predictor.outputs(examples, batch_tokens=300))
        told = simulate(table, Setting(run.rule, DEPTHS), predictor.required_task)  # pyright: ignore
        np.testing.assert_allclose(together, told.logits, atol=ATOL)
        counts = np.bincount(told.depths, minlength=DEPTHS + 1)[1:]
        np.testing.assert_array_equal(run.depths, counts)
        through = [int(lengths[told.depths >= depth].sum()) for depth in range(1, DEPTHS + 1)]
        assert run.tokens.tolist() == through
        assert run.mean_depth == pytest.approx(told.mean_depth(lengths))
        left |= set(told.depths.tolist())
        run.forget()
        alone = np.concatenate(
            [predictor.outputs([example], batch_tokens=300)[0] for example in examples]
        )
        np.testing.assert_allclose(together, alone, atol=ATOL)
        assert run.tokens.tolist() == through
    assert len(left) >= 2


def test_a_fixed_depth(folders: dict[str, Path]) -> None:
    folder = folders["multiclass"]
    predictor = Predictor.load(folder)
    examples = encoded(predictor)
    table = answers_of_all_depths(predictor.model, examples)
    for depth in range(1, DEPTHS + 1):
        assert set_exit(predictor, folder, depth=depth) is None
        found = np.concatenate(predictor.outputs(examples, batch_tokens=300))
        np.testing.assert_allclose(found, table[depth - 1], atol=ATOL)
    run = set_exit(predictor, folder, depth=2, exit_when="confidence=1")
    assert isinstance(run, ExitRun)
    found = np.concatenate(predictor.outputs(examples, batch_tokens=300))
    np.testing.assert_allclose(found, table[1], atol=ATOL)
    assert run.mean_depth == 2
    set_exit(predictor, folder)
    assert predictor.exits is None
    assert predictor.model.model.encoder.num_depths == DEPTHS


def test_refusals(folders: dict[str, Path]) -> None:
    predictor = Predictor.load(folders["regression"])
    with pytest.raises(SettingsError, match="numbers have no confidence"):
        set_exit(predictor, folders["regression"], exit_when="confidence=0.9")
    with pytest.raises(SettingsError, match=r"active depth is 6, allowed are 1 to .* = 5"):
        set_exit(predictor, folders["regression"], depth=6)
    with pytest.raises(SettingsError, match="no rule was chosen for it"):
        set_exit(predictor, folders["regression"], exit_when="auto")
    data = EvaluationJob(Path("t.csv"))
    for job, message in (
        (ExitJob(data, max_drop=-1), "max_drop is -1"),
        (ExitJob(data, rounds=0), "rounds is 0"),
        (ExitJob(data, criteria=("boldness",)), "criteria are boldness"),  # pyright: ignore
        (ExitJob(data, criteria=()), "criteria are none"),
    ):
        with pytest.raises(SettingsError, match=message):
            find_exits(folders["regression"], job)


@pytest.fixture
def table(folders: dict[str, Path], tmp_path: Path) -> Path:
    """Texts whose label is what the model says, so that shallow depths are worse."""
    predictor = Predictor.load(folders["multiclass"])
    rows = [f"{text},{p.label}" for text, p in zip(TEXTS, predictor.predict(TEXTS), strict=True)]
    path = tmp_path / "t.csv"
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_the_command_chooses_and_writes(
    folders: dict[str, Path], table: Path, tmp_path: Path
) -> None:
    folder, command = folders["multiclass"], CliRunner()
    evaluation = EvaluationJob(table)
    job = ExitJob(evaluation, max_drop=0.1, criteria=("patience",), timed=4, rounds=1, threads=1)
    result = find_exits(folder, job)
    assert not (folder / "exits.json").exists()
    assert "24 texts choose a rule by chance" in result.notes[-1]
    for _ in range(2):
        names = write_result(result)
    assert all((folder / name).exists() for name in names)
    assert "plots/exits.svg" in names
    options = ["--timed", "4", "--rounds", "1", "--threads", "1", "--max-drop", "0.1"]
    done = command.invoke(app, ["exits", str(folder), str(table), *options])
    assert done.exit_code == 0, done.output
    assert "all 5 depths" in done.stdout
    found = json.loads((folder / "exits.json").read_text())
    assert found["full"]["score"] == 1.0
    assert found["chosen"]["score"] >= 0.9
    good = [p for p in found["points"] if p["sentences_per_second"] and p["score"] >= 0.9]
    best = max(p["sentences_per_second"] for p in good)
    fast = [p for p in good if p["sentences_per_second"] >= 0.95 * best]
    assert found["chosen"] in fast
    assert found["chosen"]["score"] == max(p["score"] for p in fast)
    card = (folder / "README.md").read_text()
    assert card.count("## Depth and speed") == 1
    assert "plots/exits.svg" in card
    steps = json.loads((folder / "report.json").read_text())["steps"]
    assert [step["step"] for step in steps] == ["exits"]
    report = evaluate_folder(folder, EvaluationJob(table, exit_when="auto"))
    chosen = json.loads((folder / "exits.json").read_text())["chosen"]
    assert report.evaluation.scores["accuracy"] == pytest.approx(chosen["score"])  # pyright: ignore
    by_rule = command.invoke(
        app, ["evaluate", str(folder), str(table), "--exit", "patience=1", "--json"]
    )
    assert 1 < json.loads(by_rule.stdout)["mean_depth"] <= 5
    shallow = command.invoke(app, ["evaluate", str(folder), str(table), "--depth", "1", "--json"])
    assert "mean_depth" not in json.loads(shallow.stdout)
    answer = command.invoke(app, ["predict", str(folder), TEXTS[0], "--exit", "auto"])
    assert answer.exit_code == 0, answer.output
    wrong = command.invoke(app, ["evaluate", str(folder), str(table), "--exit", "confidance=1"])
    assert isinstance(wrong.exception, SettingsError) or wrong.exit_code == 2
    assert not list(tmp_path.glob("*.tmp*"))


def test_windows_of_a_long_text_leave_one_by_one(folders: dict[str, Path], tmp_path: Path) -> None:
    from litebert.tasks.classification import SequenceClassification

    source = folders["multiclass"]
    task = load_task(source)
    assert isinstance(task, SequenceClassification)
    predictor = Predictor.load(source)
    long = task.model_copy(update={"max_length": 12, "stride": 5})
    save_model(predictor.model, tmp_path / "long", predictor.tokenizer, long.to_json())
    path = tmp_path / "t.csv"
    rows = [f"{text} {text} {text},{'good' if n % 2 else 'bad'}" for n, text in enumerate(TEXTS)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    options = ["--timed", "4", "--rounds", "1", "--threads", "1", "--criterion", "patience"]
    arguments = ["exits", str(tmp_path / "long"), str(path), *options, "--dry-run", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["examples"] == len(TEXTS)
    assert {point["rule"].split("=")[0] for point in found["points"]} == {"", "patience"}
    assert not (tmp_path / "long" / "exits.json").exists()


def test_rule_without_a_threshold_of_its_own() -> None:
    assert str(ExitRule("patience", 2, tolerance=0.3)) == "patience=2,tolerance=0.3"
