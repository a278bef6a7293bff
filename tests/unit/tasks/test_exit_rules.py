"""Exit rules against a slow transcription, one sequence at a time; what they read and refuse."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import CheckpointError, SettingsError
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.exit_file import (
    EXIT_FILE,
    ExitCurve,
    ExitPoint,
    read_exit_curve,
    read_exit_rule,
)
from litebert.tasks.exit_rules import ExitRule, ExitWatch, exit_task, parse_exit

DEPTHS = 5


def task_of(kind: str) -> SequenceClassification:
    labels = {"binary": ("no", "yes"), "regression": ()}.get(kind, ("a", "b", "c"))
    metric = {"regression": "pearson", "multilabel": "f1_micro"}.get(kind, "accuracy")
    extra = {"target_mean": 4.0, "target_scale": 2.0} if kind == "regression" else {}
    return SequenceClassification(
        kind=kind, labels=labels, metric=metric, temperature=1.7, threshold=0.4, **extra
    )


def slow_depth(task: SequenceClassification, rule: ExitRule, table: np.ndarray) -> int:
    """Depth after which one sequence leaves; `table` is [L, C]."""
    last, same = None, 0
    for depth in range(1, len(table)):
        z = [float(value) / task.temperature for value in table[depth - 1]]
        if task.kind == "regression":
            answer, certain, chaos = float(table[depth - 1][0]), None, None
        elif task.kind == "multilabel":
            p = [1 / (1 + math.exp(-value)) for value in z]
            answer = tuple(value >= 0.4 for value in p)
            certain = min(v if v >= 0.4 else 1 - v for v in p)
            chaos = max(-(v * math.log2(v) + (1 - v) * math.log2(1 - v)) for v in p)
        else:
            top = max(z)
            weights = [math.exp(value - top) for value in z]
            p = [weight / sum(weights) for weight in weights]
            answer, certain = p.index(max(p)), max(p)
            chaos = -sum(v * math.log(v) for v in p) / math.log(len(p))
        if task.kind == "regression":
            is_same = last is not None and abs(answer - last) <= rule.tolerance
        else:
            is_same = last is not None and answer == last
        same, last = (same + 1 if is_same else 0), answer
        if rule.criterion == "patience":
            done = same >= rule.threshold
        elif rule.criterion == "confidence":
            done = certain is not None and certain >= rule.threshold
        else:
            done = chaos is not None and chaos <= rule.threshold
        if done and depth >= rule.first_depth:
            return depth
    return len(table)


def rules(kind: str) -> st.SearchStrategy[ExitRule]:
    first = st.integers(1, 3)
    patience = st.builds(
        ExitRule, st.just("patience"), st.integers(1, 4).map(float), st.floats(0.01, 1), first
    )
    if kind == "regression":
        return patience
    confidence = st.builds(ExitRule, st.just("confidence"), st.floats(0.3, 1), st.just(0.1), first)
    entropy = st.builds(ExitRule, st.just("entropy"), st.floats(0, 0.99), st.just(0.1), first)
    return patience | confidence | entropy


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
@given(data=st.data())
def test_each_leaves_where_it_would_alone(kind: str, data: st.DataObject) -> None:
    task, rule = task_of(kind), data.draw(rules(kind))
    width = len(task.config_labels())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**20)))
    count = data.draw(st.integers(1, 6))
    table = rng.normal(size=(1, count, width)) * 2 + rng.normal(size=(DEPTHS, count, width))
    watch, present, found = ExitWatch(rule, task), np.arange(count), np.full(count, DEPTHS)
    for depth in range(1, DEPTHS):
        if not present.size:
            break
        if not watch.needs(depth):
            continue
        leave = watch.leaving(depth, table[depth - 1, present])
        found[present[leave]] = depth
        present = present[~leave]
    assert found.tolist() == [slow_depth(task, rule, table[:, n]) for n in range(count)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("patience=2", ExitRule("patience", 2)),
        (" confidence = 0.9 , first=3", ExitRule("confidence", 0.9, first_depth=3)),
        ("patience=1,tolerance=0.05", ExitRule("patience", 1, tolerance=0.05)),
        ("entropy=0", ExitRule("entropy", 0)),
    ],
)
def test_rules_are_read_and_written(text: str, rule: ExitRule) -> None:
    assert parse_exit(text) == rule
    assert parse_exit(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "give one of"),
        ("confidence", "give one of"),
        ("confidence=", "give one of"),
        ("confidence=high", "give one of"),
        ("patience=1,patience=2", "give one of"),
        ("patience=1,entropy=0.5", "names 2 criteria"),
        ("first=1", "names 0 criteria"),
        ("confidance=0.9", "did you mean 'confidence'"),
        ("confidence=1.5", "allowed: more than 0, at most 1"),
        ("confidence=nan", "allowed: more than 0"),
        ("confidence=0", "allowed: more than 0"),
        ("entropy=1", "allowed: 0 and more, below 1"),
        ("patience=0", "a whole number, 1 and more"),
        ("patience=1.5", "a whole number, 1 and more"),
        ("patience=inf", "a whole number, 1 and more"),
        ("patience=1,tolerance=-1", "tolerance=-1; allowed"),
        ("patience=1,tolerance=nan", "tolerance=nan; allowed"),
        ("patience=1,first=0", "first=0; allowed"),
        ("patience=1,first=1e300", "first=1e.300; allowed"),
        ("patience=1,first=1.5", "first=1.5; allowed"),
        ("x" * 9999, "give one of"),
    ],
)
def test_what_is_no_rule(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_exit(text)


def test_numbers_have_no_confidence() -> None:
    with pytest.raises(SettingsError, match="numbers have no confidence; give patience"):
        ExitWatch(ExitRule("confidence", 0.9), task_of("regression"))
    with pytest.raises(SettingsError, match="not for an encoder without a task"):
        exit_task(None)


def curve(rule: str = "confidence=0.9", depth: int = 4) -> ExitCurve:
    full, chosen = ExitPoint("", 4, 0.9, 4.0, 10.0), ExitPoint(rule, depth, 0.9, 2.0, 18.0)
    return ExitCurve("accuracy", 0.005, "t.csv", 100, 1, full, chosen, 0.001, (full, chosen))


def test_the_chosen_rule_comes_back(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no rule was chosen for it"):
        read_exit_rule(tmp_path)
    (tmp_path / EXIT_FILE).write_text(curve().to_json(), encoding="utf-8")
    assert read_exit_rule(tmp_path) == (ExitRule("confidence", 0.9), 4)
    assert json.loads(curve().to_json())["speedup"] == 1.8
    (tmp_path / EXIT_FILE).write_text(curve("", 2).to_json(), encoding="utf-8")
    assert read_exit_rule(tmp_path) == (None, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "JSON"),
        ("[]", "."),
        ('{"format_version": 2, "chosen": {}}', "format_version is 2"),
        ('{"format_version": 1, "chosen": []}', "a table 'chosen'"),
        ('{"format_version": 1, "chosen": {"rule": 1, "depth": 2}}', "the chosen rule is 1"),
        ('{"format_version": 1, "chosen": {"rule": "", "depth": true}}', "depth True"),
        ('{"format_version": 1, "chosen": {"rule": "", "depth": 0}}', "depth 0"),
        ('{"format_version": 1, "chosen": {"rule": "boldness=1", "depth": 2}}', "boldness"),
    ],
)
def test_damaged_files(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / EXIT_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        read_exit_rule(tmp_path)


def test_the_curve_is_shown_by_depth(tmp_path: Path) -> None:
    assert read_exit_curve(tmp_path) is None
    shallow = ExitPoint("", 2, 0.8, 2.0)
    text = replace(curve(), points=(*curve().points, shallow)).to_json()
    (tmp_path / EXIT_FILE).write_text(text, encoding="utf-8")
    found = read_exit_curve(tmp_path)
    assert found is not None
    full = {"rule": "", "depth": 4, "score": 0.9, "speed": 10.0}
    assert found["points"] == [{"rule": "", "depth": 2, "score": 0.8, "speed": None}, full]
    assert (found["metric"], found["data"], found["examples"]) == ("accuracy", "t.csv", 100)
    assert found["full"] == full
    assert found["chosen"] == {"rule": "confidence=0.9", "depth": 4, "score": 0.9, "speed": 18.0}


@pytest.mark.parametrize(
    "change",
    [
        {"format_version": 2}, {"points": 7}, {"points": [7, {}]}, {"full": None}, {"chosen": []},
        {"metric": 1}, {"data": "x" * 1000}, {"examples": "many"},
        {"full": {"rule": "", "depth": 4, "score": 1e300}},
        {"full": {"rule": "", "depth": True, "score": 0.5}},
        {"chosen": {"rule": "", "depth": 4, "score": 0.5, "sentences_per_second": "fast"}},
    ],
)  # fmt: skip
def test_a_damaged_curve_is_none(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / EXIT_FILE).write_text(json.dumps(curve().to_dict() | change), encoding="utf-8")
    assert read_exit_curve(tmp_path) is None
    (tmp_path / EXIT_FILE).write_text("{", encoding="utf-8")
    assert read_exit_curve(tmp_path) is None
