"""Choosing among settings: simulated answers, the cheapest good one, halves, the front."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.compress.exits.candidates import Setting, settings_to_try, simulate
from litebert.compress.exits.choice import choose, expected_drop, front, try_settings
from litebert.errors import DataError
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.exit_rules import ExitRule

TASK = SequenceClassification(kind="multiclass", labels=("a", "b", "c"), metric="accuracy")
NUMBER = SequenceClassification(kind="regression", metric="mse")
DEPTHS, COUNT = 4, 60


def table_of(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Answers that get better and surer with depth, and the truth."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, COUNT)
    truth = np.eye(3)[labels]
    table = np.stack([rng.normal(size=(COUNT, 3)) + depth * 1.5 * truth for depth in range(1, 5)])
    return table, labels


def accuracy(labels: np.ndarray) -> Any:
    return lambda logits, texts: float((logits[texts].argmax(1) == labels[texts]).mean())


def test_a_fixed_depth_is_a_row_of_the_table() -> None:
    table, _ = table_of()
    found = simulate(table, Setting(None, 2), TASK)
    np.testing.assert_array_equal(found.logits, table[1])
    assert found.mean_depth(np.ones(COUNT, np.int64)) == 2
    lengths = np.arange(COUNT)
    one = simulate(table, Setting(ExitRule("confidence", 0.8), DEPTHS), TASK)
    assert one.mean_depth(lengths) == pytest.approx((one.depths * lengths).sum() / lengths.sum())
    for n in range(COUNT):
        np.testing.assert_array_equal(one.logits[n], table[one.depths[n] - 1, n])
    with pytest.raises(DataError, match="depth 5 of a table of 4"):
        simulate(table, Setting(None, 5), TASK)


def test_every_setting_is_tried_once_the_whole_model_first() -> None:
    settings = list(settings_to_try(6, TASK))
    assert settings[0] == Setting(None, 6)
    assert len(set(settings)) == len(settings)
    assert {s.rule.criterion for s in settings if s.rule} == {"patience", "confidence", "entropy"}
    assert {s.name for s in settings} >= {"depth 3", "patience=2", "confidence=0.9"}
    numbers = [s.rule for s in settings_to_try(6, NUMBER) if s.rule]
    assert {rule.criterion for rule in numbers} == {"patience"}
    assert len({rule.tolerance for rule in numbers}) > 1
    assert list(settings_to_try(1, TASK, ("patience",))) == [Setting(None, 1)]


@given(seed=st.integers(0, 200), max_drop=st.sampled_from([0.0, 0.02, 0.2]))
def test_the_choice_is_the_cheapest_good_one(seed: int, max_drop: float) -> None:
    table, labels = table_of(seed)
    found = try_settings(
        table, np.full(COUNT, 7), list(settings_to_try(DEPTHS, TASK, ("patience",))), TASK,
        accuracy(labels), COUNT,
    )  # fmt: skip
    scores = [item.score for item in found]
    chosen = found[choose(found, scores, max_drop, higher_is_better=True)]
    assert chosen.score >= scores[0] - max_drop - 1e-9
    cheaper = [item for item in found if item.mean_depth < chosen.mean_depth]
    assert all(item.score < scores[0] - max_drop for item in cheaper)
    best = [found[n] for n in front(found, higher_is_better=True)]
    assert [item.mean_depth for item in best] == sorted(item.mean_depth for item in best)
    for item in found:
        assert any(b.mean_depth <= item.mean_depth and b.score >= item.score for b in best)


def test_a_score_that_shall_be_low() -> None:
    table, _ = table_of()
    settings = [Setting(None, depth) for depth in (4, 3, 2, 1)]
    found = try_settings(
        table, np.full(COUNT, 7), settings, TASK, lambda logits, _: float(logits[0, 0]), COUNT
    )
    assert choose(found, [0.1, 0.1, 0.2, 0.9], 0.1, higher_is_better=False) == 2
    assert choose(found, [0.1, 0.1, 0.2, 0.9], 0.0, higher_is_better=False) == 1
    nan = float("nan")
    assert choose(found, [nan, nan, nan, nan], 1.0, higher_is_better=True) == 0


def test_halves_judge_each_other() -> None:
    table, labels = table_of(3)
    settings = list(settings_to_try(DEPTHS, TASK))
    found = try_settings(table, np.full(COUNT, 7), settings, TASK, accuracy(labels), COUNT)
    drop = expected_drop(found, accuracy(labels), COUNT, 0.0, higher_is_better=True)
    assert 0.0 <= drop + 0.3 <= 0.6
    alone = found[:1]
    assert expected_drop(alone, accuracy(labels), COUNT, 0.0, higher_is_better=True) == 0
    assert np.isnan(expected_drop(found, accuracy(labels), 19, 0.0, higher_is_better=True))
