"""Single-label scores equal scikit-learn's on any labels, and wrong input is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle

from litebert.errors import DataError
from litebert.tasks import metrics

# Both sides add the same few float64 numbers, in another order.
ATOL = 1e-12


@st.composite
def labelled(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    classes = draw(st.integers(2, 6))
    size = draw(st.integers(1, 40))
    ids = st.lists(st.integers(0, classes - 1), min_size=size, max_size=size)
    return np.array(draw(ids)), np.array(draw(ids)), classes


@given(labelled())
def test_confusion_matrix_equals_the_reference(case):
    truth, predicted, classes = case
    expected = oracle.confusion_matrix(truth, predicted, labels=range(classes))
    np.testing.assert_array_equal(metrics.confusion_matrix(truth, predicted, classes), expected)


@given(labelled())
def test_scores_equal_the_reference(case):
    truth, predicted, classes = case
    confusion = metrics.confusion_matrix(truth, predicted, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference warns where a class is never seen
        expected = {
            "accuracy": oracle.accuracy_score(truth, predicted),
            "balanced": oracle.balanced_accuracy_score(truth, predicted),
            "matthews": oracle.matthews_corrcoef(truth, predicted),
        } | {
            average: oracle.f1_score(truth, predicted, average=average)
            for average in ("macro", "micro", "weighted")
        }
    got = {
        "accuracy": metrics.accuracy(confusion),
        "balanced": metrics.balanced_accuracy(confusion),
        "matthews": metrics.matthews(confusion),
    } | {average: metrics.f1(confusion, average) for average in ("macro", "micro", "weighted")}
    assert got == pytest.approx(expected, abs=ATOL)


@given(labelled())
def test_class_table_equals_the_reference(case):
    truth, predicted, classes = case
    names = [f"class {i}" for i in range(classes)]
    table = metrics.class_table(metrics.confusion_matrix(truth, predicted, classes), names)
    precision, recall, f1, support = oracle.precision_recall_fscore_support(
        truth, predicted, labels=range(classes), zero_division=0.0
    )
    assert [row.label for row in table] == names
    np.testing.assert_allclose([row.precision for row in table], precision, atol=ATOL)
    np.testing.assert_allclose([row.recall for row in table], recall, atol=ATOL)
    np.testing.assert_allclose([row.f1 for row in table], f1, atol=ATOL)
    assert [row.support for row in table] == support.tolist()
    assert sum(row.predicted for row in table) == len(truth)


@given(labelled(), st.integers(0, 2**32 - 1))
def test_log_loss_equals_the_reference(case, seed):
    truth, _, classes = case
    p = np.random.default_rng(seed).dirichlet(np.ones(classes), size=len(truth))
    expected = oracle.log_loss(truth, p, labels=range(classes))
    assert metrics.log_loss(p, truth) == pytest.approx(expected, rel=1e-9)


@given(labelled(), st.randoms())
def test_renaming_classes_changes_no_average(case, random):
    truth, predicted, classes = case
    renamed = list(range(classes))
    random.shuffle(renamed)
    new = np.array(renamed)
    before = metrics.confusion_matrix(truth, predicted, classes)
    after = metrics.confusion_matrix(new[truth], new[predicted], classes)
    assert metrics.matthews(after) == pytest.approx(metrics.matthews(before), abs=ATOL)
    assert metrics.f1(after, "macro") == pytest.approx(metrics.f1(before, "macro"), abs=ATOL)


def test_log_loss_of_a_certain_mistake_is_finite():
    p = np.array([[1.0, 0.0]])
    assert metrics.log_loss(p, np.array([1])) == pytest.approx(87.336, abs=1e-3)
    assert metrics.log_loss(p, np.array([0])) == 0.0


def test_constant_answers_have_no_correlation():
    confusion = metrics.confusion_matrix(np.array([0, 1, 1]), np.array([1, 1, 1]), 2)
    assert metrics.matthews(confusion) == 0.0
    assert metrics.balanced_accuracy(confusion) == 0.5


def test_an_empty_confusion_matrix_scores_zero():
    empty = np.zeros((2, 2), dtype=np.int64)
    assert metrics.accuracy(empty) == metrics.balanced_accuracy(empty) == 0.0
    assert metrics.f1(empty, "macro") == metrics.f1(empty, "weighted") == 0.0


def test_binary_scores_are_those_of_the_second_class():
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    scores = metrics.classification_scores(p, np.array([0, 1, 0]))
    assert (scores["precision"], scores["recall"]) == (0.5, 1.0)
    assert scores["f1"] == pytest.approx(2 / 3)
    three = metrics.classification_scores(np.eye(3), np.arange(3))
    assert "f1" not in three and three["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        ([], [], "non-empty"),
        ([0, 1], [0], "shape"),
        ([[0]], [[0]], "shape"),
        ([0, 2], [0, 1], "label id 2 at example 1 is outside 0..1"),
        ([0, 1], [-1, 1], "answer id -1 at example 0"),
    ],
)
def test_labels_that_do_not_fit_are_refused(truth, predicted, message):
    with pytest.raises(DataError, match=message):
        metrics.confusion_matrix(np.array(truth), np.array(predicted), 2)


def test_wrong_names_are_refused():
    confusion = np.eye(2, dtype=np.int64)
    with pytest.raises(DataError, match="1 label names for scores of 2 classes"):
        metrics.class_table(confusion, ["only"])
    with pytest.raises(DataError, match="'mean' is not known"):
        metrics.f1(confusion, "mean")
