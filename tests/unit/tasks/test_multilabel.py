"""Multi-label scores equal scikit-learn's, and wrong input is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle

from litebert.errors import DataError
from litebert.tasks.multilabel import multilabel_scores, multilabel_table

ATOL = 1e-12


@given(st.integers(1, 20), st.integers(1, 5), st.integers(0, 2**32 - 1), st.floats(0.1, 0.9))
def test_scores_equal_the_reference(size, labels, seed, threshold):
    rng = np.random.default_rng(seed)
    p, truth = rng.random((size, labels)), rng.integers(0, 2, (size, labels))
    answer = (p >= threshold).astype(int)
    scores = multilabel_scores(p, truth, threshold=threshold)
    # One column is read as plain classes by the reference's averages; two say what is meant.
    wide = (lambda x: np.hstack([x, np.zeros_like(x)])) if labels == 1 else (lambda x: x)
    for average in ("micro", "samples"):
        expected = oracle.f1_score(wide(truth), wide(answer), average=average, zero_division=0)
        assert scores[f"f1_{average}"] == pytest.approx(expected, abs=ATOL)
    per_label = [oracle.f1_score(truth[:, j], answer[:, j], zero_division=0) for j in range(labels)]
    assert scores["f1_macro"] == pytest.approx(np.mean(per_label), abs=ATOL)
    assert scores["subset_accuracy"] == pytest.approx((truth == answer).all(axis=1).mean())
    assert scores["label_accuracy"] == pytest.approx(1 - oracle.hamming_loss(truth, answer))
    table = multilabel_table(p, truth, [str(j) for j in range(labels)], threshold=threshold)
    assert [row.f1 for row in table] == pytest.approx(per_label, abs=ATOL)
    assert [row.support for row in table] == truth.sum(axis=0).tolist()
    assert [row.predicted for row in table] == answer.sum(axis=0).tolist()


def test_log_loss_equals_the_reference():
    rng = np.random.default_rng(3)
    p, truth = rng.random((30, 4)), rng.integers(0, 2, (30, 4))
    expected = np.mean([oracle.log_loss(truth[:, j], p[:, j], labels=[0, 1]) for j in range(4)])
    assert multilabel_scores(p, truth)["log_loss"] == pytest.approx(expected)


def test_no_label_at_all_scores_zero_without_a_warning():
    scores = multilabel_scores(np.zeros((3, 2)), np.zeros((3, 2)))
    assert scores["f1_micro"] == scores["precision_micro"] == scores["recall_micro"] == 0.0
    assert scores["subset_accuracy"] == 1.0


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (np.zeros((0, 2)), "non-empty"),
        (np.zeros((3, 1)), "shape"),
        (np.zeros(3), "shape"),
        (np.array([[0, 1], [2, 0], [0, 0]]), "target 2 of example 1, label 0"),
    ],
)
def test_targets_that_do_not_fit_are_refused(targets, message):
    with pytest.raises(DataError, match=message):
        multilabel_scores(np.full((3, 2), 0.5), targets)


def test_a_table_has_one_name_for_each_label():
    with pytest.raises(DataError, match="1 label names for scores of 2 classes"):
        multilabel_table(np.full((3, 2), 0.5), np.zeros((3, 2)), ["one"])
