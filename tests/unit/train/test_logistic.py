"""Logistic regression finds the optimum that scikit-learn finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.errors import DataError, SettingsError
from litebert.train.logistic import fit_logistic


def data(count: int, width: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    labels[:classes] = np.arange(classes)[:count]
    return rng.normal(size=(count, width)) + 0.5 * labels[:, None], labels


@pytest.mark.parametrize("strength", [0.1, 1.0, 30.0])
def test_weights_are_those_of_scikit_learn(strength: float) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    x, y = data(60, 5, 3, 0)
    weights, biases = fit_logistic(x, y, 3, strength=strength)
    theirs = linear.LogisticRegression(C=strength, tol=1e-10, max_iter=5000).fit(x, y)
    np.testing.assert_allclose(weights, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(biases, theirs.intercept_ - theirs.intercept_.mean(), atol=2e-4)


@settings(max_examples=15)
@given(st.integers(1, 30), st.integers(1, 6), st.integers(2, 4), st.integers(0, 99))
def test_the_gradient_vanishes_at_the_answer(n: int, h: int, c: int, seed: int) -> None:
    x, y = data(n, h, c, seed)
    weights, biases = fit_logistic(x, y, c, strength=2.0)
    logits = x @ weights.T + biases
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    wrong = p - np.eye(c)[y]
    np.testing.assert_allclose(2.0 * wrong.T @ x + weights, 0.0, atol=1e-3)
    assert abs(biases.mean()) < 1e-9


def test_what_does_not_fit_is_refused() -> None:
    x, y = data(6, 2, 2, 0)
    for features, labels in ((x[0], y), (x, y[:3]), (x[:0], y[:0]), (x * np.nan, y), (x, y + 1)):
        with pytest.raises(DataError):
            fit_logistic(features, labels, 2)
    for options in ({"num_classes": 1}, {"num_classes": 2, "strength": 0.0}):
        with pytest.raises(SettingsError):
            fit_logistic(x, y, **options)
