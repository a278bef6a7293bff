"""Regression scores equal scipy's and scikit-learn's; undefined correlations are 0."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics as oracle

from litebert.errors import DataError
from litebert.tasks.correlation import average_ranks, pearson, regression_scores, spearman

# Cancellation in the mean costs a few digits on both sides.
ATOL = 1e-9


def spread_out(values: list[float]) -> np.ndarray:
    array = np.array(values)
    assume(array.std() > 1e-3 * max(1.0, np.abs(array).max()))
    return array


PAIRS = st.integers(3, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-50, 50), min_size=n, max_size=n)] * 2)
)


@given(PAIRS)
def test_correlations_equal_the_reference(pair):
    a, b = (spread_out([x / 7 for x in values]) for values in pair)
    assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic, abs=ATOL)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=ATOL)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_ties_share_their_average_rank(values):
    np.testing.assert_allclose(average_ranks(np.array(values)), stats.rankdata(values))


@given(PAIRS, st.floats(0.01, 100), st.floats(-100, 100))
def test_scale_and_shift_do_not_matter(pair, scale, shift):
    a, b = (spread_out([float(x) for x in values]) for values in pair)
    assert pearson(a * scale + shift, b) == pytest.approx(pearson(a, b), abs=ATOL)
    assert pearson(-a, b) == pytest.approx(-pearson(a, b), abs=ATOL)


@given(PAIRS)
def test_errors_equal_the_reference(pair):
    a, b = (spread_out([x / 3 for x in values]) for values in pair)
    scores = regression_scores(a, b)
    assert scores["mse"] == pytest.approx(oracle.mean_squared_error(b, a))
    assert scores["mae"] == pytest.approx(oracle.mean_absolute_error(b, a))
    assert scores["r2"] == pytest.approx(oracle.r2_score(b, a))
    assert scores["pearson_spearman"] == pytest.approx((pearson(a, b) + spearman(a, b)) / 2)


@pytest.mark.parametrize("constant", [0.0, 0.1, -3.7, 1e300])
def test_a_constant_list_has_correlation_zero(constant):
    flat, varied = np.full(7, constant), np.arange(7.0)
    assert pearson(flat, varied) == spearman(flat, varied) == pearson(varied, flat) == 0.0


def test_scores_of_constant_targets_are_finite():
    scores = regression_scores(np.array([1.0, 2.0]), np.array([5.0, 5.0]))
    assert scores["r2"] == 0.0
    assert all(np.isfinite(value) for value in scores.values())


@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_huge_and_tiny_numbers_do_not_overflow(scale):
    a = np.array([1.0, 2.0, 4.0])
    assert pearson(a * scale, a) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("predicted", "truth", "message"),
    [
        ([], [], "non-empty"),
        ([1.0], [1.0, 2.0], "shape"),
        ([1.0, float("nan")], [1.0, 2.0], "answer nan at example 1"),
        ([1.0, 2.0], [float("inf"), 2.0], "target inf at example 0"),
    ],
)
def test_unusable_numbers_are_refused(predicted, truth, message):
    with pytest.raises(DataError, match=message):
        regression_scores(np.array(predicted), np.array(truth))
