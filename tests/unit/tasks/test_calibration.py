"""Calibration error by hand, temperature recovery, and the edges of both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from litebert.errors import DataError
from litebert.tasks import calibration
from litebert.tasks.metrics import log_loss

# Sampling noise of a temperature fitted to 20,000 draws; measured spread is about 1 %.
RECOVERY_RTOL = 0.04


@given(st.lists(st.floats(-700, 700), min_size=2, max_size=8))
def test_softmax_and_sigmoid_equal_the_reference(values):
    z = np.array([values])
    np.testing.assert_allclose(calibration.softmax(z), special.softmax(z, axis=1), atol=1e-15)
    np.testing.assert_allclose(calibration.sigmoid(z), special.expit(z), atol=1e-15)


def test_extreme_logits_stay_finite():
    z = np.array([[1e30, -1e30, 0.0]])
    assert calibration.softmax(z).tolist() == [[1.0, 0.0, 0.0]]
    assert calibration.sigmoid(z).tolist() == [[1.0, 0.0, 0.5]]


def test_error_by_hand():
    confidence = np.array([0.95, 0.95, 0.55, 0.55])
    correct = np.array([True, False, True, True])
    # Two bins of two answers: |0.5 - 0.95| and |1 - 0.55|, equal weights.
    got = calibration.expected_calibration_error(confidence, correct)
    assert got == pytest.approx(0.45)


def test_bins_hold_their_upper_edge_and_cover_everything():
    bins = calibration.reliability_bins(
        np.array([0.0, 0.1, 0.10001, 1.0]), np.ones(4, dtype=bool), num_bins=10
    )
    assert [item.count for item in bins] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert bins[0].low == 0.0 and bins[-1].high == 1.0
    assert bins[2].accuracy == bins[2].confidence == 0.0


@given(st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_error_is_a_share_and_bins_count_every_answer(size, seed):
    rng = np.random.default_rng(seed)
    confidence, correct = rng.random(size), rng.random(size) < 0.5
    assert 0 <= calibration.expected_calibration_error(confidence, correct) <= 1
    assert sum(b.count for b in calibration.reliability_bins(confidence, correct)) == size


def test_calibrated_draws_have_a_small_error():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 50_000)
    correct = rng.random(50_000) < confidence
    assert calibration.expected_calibration_error(confidence, correct) < 0.01


@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.5, 6.0])
def test_a_known_temperature_is_recovered(temperature):
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 2, (20_000, 4))
    p = calibration.softmax(logits)
    labels = (p.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1)
    fitted = calibration.fit_temperature(logits * temperature, labels)
    assert fitted == pytest.approx(temperature, rel=RECOVERY_RTOL)


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_a_known_binary_temperature_is_recovered(temperature):
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 2, (10_000, 2))
    targets = rng.random(logits.shape) < calibration.sigmoid(logits)
    fitted = calibration.fit_binary_temperature(logits * temperature, targets)
    assert fitted == pytest.approx(temperature, rel=RECOVERY_RTOL)


@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(5, 60), st.floats(0.1, 8))
def test_no_other_temperature_is_better(seed, classes, size, scale):
    rng = np.random.default_rng(seed)
    z, y = rng.normal(0, scale, (size, classes)), rng.integers(0, classes, size)

    def loss(beta: float) -> float:
        return log_loss(calibration.softmax(z * beta), y)

    best = optimize.minimize_scalar(loss, bounds=(1 / 20, 20), method="bounded").fun
    assert loss(1 / calibration.fit_temperature(z, y)) <= best + 1e-6


def test_separable_and_useless_logits_end_at_the_bounds():
    labels = np.array([0, 1, 0])
    right = np.eye(2)[labels]
    assert calibration.fit_temperature(right, labels) == calibration.MIN_TEMPERATURE
    assert calibration.fit_temperature(-right, labels) == calibration.MAX_TEMPERATURE
    assert calibration.fit_binary_temperature(right * 2 - 1, right) == calibration.MIN_TEMPERATURE


def test_equal_logits_keep_temperature_one():
    assert calibration.fit_temperature(np.full((4, 3), 0.1), np.array([0, 1, 2, 0])) == 1.0
    assert calibration.fit_binary_temperature(np.zeros((4, 1)), np.ones((4, 1))) == 1.0


def test_each_binary_decision_counts_once():
    confidence, correct = calibration.binary_confidence(
        np.array([[0.9, 0.2]]), np.array([[0.0, 0.0]])
    )
    assert confidence.tolist() == [0.9, 0.8]
    assert correct.tolist() == [False, True]


def test_unusable_input_is_refused():
    ok = np.zeros((2, 2))
    with pytest.raises(DataError, match="non-empty list"):
        calibration.reliability_bins(np.array([]), np.array([]))
    with pytest.raises(DataError, match="outside"):
        calibration.reliability_bins(np.array([1.2]), np.array([True]))
    with pytest.raises(DataError, match=r"expected \[N, C\]"):
        calibration.fit_temperature(ok, np.array([0]))
    with pytest.raises(DataError, match="same non-empty shape"):
        calibration.fit_binary_temperature(ok, np.zeros((1, 2)))
    with pytest.raises(DataError, match="NaN or infinity"):
        calibration.fit_temperature(ok + np.nan, np.array([0, 1]))
    with pytest.raises(DataError, match="NaN or infinity"):
        calibration.fit_binary_temperature(ok + np.inf, ok)
