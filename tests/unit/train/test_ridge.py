"""Ridge regression finds the optimum that scikit-learn finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.errors import DataError, SettingsError
from litebert.train.ridge import fit_ridge


@pytest.mark.parametrize("strength", [0.03, 1.0, 30.0])
def test_weights_are_those_of_scikit_learn(strength: float) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 5)) + 3.0, rng.normal(size=40) * 7 - 2
    weights, biases = fit_ridge(x, y, strength=strength)
    theirs = linear.Ridge(alpha=1 / strength).fit(x, y)
    np.testing.assert_allclose(weights[0], theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(biases[0], theirs.intercept_, atol=1e-9)


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(1, 8), st.integers(0, 99))
def test_the_gradient_vanishes_at_the_answer(n: int, h: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, h)), rng.normal(size=n)
    weights, biases = fit_ridge(x, y, strength=2.0)
    wrong = x @ weights[0] + biases[0] - y
    np.testing.assert_allclose(2.0 * wrong @ x + weights[0], 0.0, atol=1e-8)
    assert abs(wrong.sum()) < 1e-8


def test_what_does_not_fit_is_refused() -> None:
    x, y = np.ones((4, 2)), np.arange(4.0)
    for features, targets in (
        (x[0], y),
        (x, y[:3]),
        (x[:0], y[:0]),
        (x * np.nan, y),
        (x, y + np.inf),
    ):
        with pytest.raises(DataError, match="must be finite"):
            fit_ridge(features, targets)
    with pytest.raises(SettingsError, match="allowed: above 0"):
        fit_ridge(x, y, strength=0.0)
