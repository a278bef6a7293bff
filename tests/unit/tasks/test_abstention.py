"""Thresholds on confidence against a search over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError, SettingsError
from litebert.tasks.abstention import (
    MIN_ANSWERS,
    TARGETS,
    abstention_points,
    answered,
    threshold_for,
)

ANSWERS = st.lists(
    st.tuples(st.sampled_from([0.2, 0.4, 0.5, 0.7, 0.9]), st.booleans()), min_size=1, max_size=40
)


@given(ANSWERS, st.sampled_from([0.01, 0.5, 0.75, 0.9, 1.0]))
def test_the_threshold_covers_the_most_that_reaches_the_target(
    rows: list[tuple[float, bool]], target: float
) -> None:
    sure = np.array([confidence for confidence, _ in rows])
    right = np.array([correct for _, correct in rows])
    best = None
    for threshold in sorted(set(sure.tolist())):  # slow and plain: try each, lowest first
        given_ = sure >= threshold
        if right[given_].mean() >= target - 1e-12:
            best = threshold
            break
    found = threshold_for(sure, right, target)
    assert found == best
    if found is not None:
        coverage, accuracy = answered(sure, right, found)
        assert accuracy >= target - 1e-12 and coverage > 0


def test_points_are_judged_by_answers_that_did_not_choose_them() -> None:
    rng = np.random.default_rng(5)
    sure = rng.uniform(0.4, 1.0, 4000)
    right = rng.uniform(size=4000) < sure  # calibrated
    points = abstention_points(sure, right)
    assert [point.target for point in points] == list(TARGETS)
    for point in points[:3]:
        assert point.threshold is not None
        assert point.accuracy == pytest.approx(point.target, abs=0.04)
    coverages = [point.coverage for point in points]
    assert coverages == sorted(coverages, reverse=True)
    thresholds = [point.threshold for point in points if point.threshold is not None]
    assert thresholds == sorted(thresholds)


def test_chance_cannot_be_made_sure() -> None:
    rng = np.random.default_rng(6)
    sure, right = rng.uniform(size=2000), rng.uniform(size=2000) < 0.5
    last = abstention_points(sure, right)[-1]
    assert last.coverage < 0.05
    # On the answers that chose it a threshold looks perfect; the halves say what it is worth.
    none = abstention_points(np.full(60, 0.5), np.zeros(60, bool))
    assert all(p.threshold is None and p.coverage == 0.0 and p.accuracy == 1.0 for p in none)


def test_too_few_answers_choose_nothing() -> None:
    count = MIN_ANSWERS - 1
    assert abstention_points(np.ones(count), np.ones(count, bool)) == ()
    assert answered(np.array([0.5]), np.array([True]), 0.6) == (0.0, 1.0)


@pytest.mark.parametrize("target", [0.0, -1.0, 1.1, float("nan")])
def test_a_target_is_a_share(target: float) -> None:
    with pytest.raises(SettingsError, match="above 0 and at most 1"):
        threshold_for(np.ones(3), np.ones(3, bool), target)


@pytest.mark.parametrize(
    ("sure", "right"),
    [
        (np.ones(2), np.ones(3, bool)),
        (np.ones(0), np.ones(0, bool)),
        (np.array([np.nan]), np.ones(1, bool)),
    ],
)
def test_answers_that_do_not_fit(sure: np.ndarray, right: np.ndarray) -> None:
    with pytest.raises(DataError, match="one list of numbers"):
        threshold_for(sure, right, 0.9)
