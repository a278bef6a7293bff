"""An evaluation holds every part a report shows, in agreement with the scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from litebert.data.examples import Example
from litebert.errors import DataError
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.evaluation import MAX_POINTS, evaluate_answers, example_losses
from litebert.tasks.metrics import log_loss


def rows(count):
    return [Example(f"text {i}", None, None, Path("folder/mail.csv"), i + 2) for i in range(count)]


def test_classes():
    task = SequenceClassification(kind="multiclass", labels=("a", "b", "c"), metric="accuracy")
    logits = np.array([[5.0, 0, 0], [0, 9.0, 0], [0, 2.0, 0], [0, 0, 1.0]])
    labels = np.array([0, 0, 0, 2])
    got = evaluate_answers(task, logits, labels, rows(4))
    assert got.scores["accuracy"] == 0.5
    assert got.confusion == ((1, 2, 0), (0, 0, 0), (0, 0, 1))
    assert [row.support for row in got.class_table] == [3, 0, 1]
    assert sum(item.count for item in got.reliability) == 4
    assert [m.text for m in got.mistakes] == ["text 1", "text 2"]
    worst = got.mistakes[0]
    assert (worst.truth, worst.answer, worst.path, worst.line) == ("a", "b", "mail.csv", 3)
    assert worst.loss == pytest.approx(9.0, abs=1e-3) and worst.confidence > 0.99
    assert len(evaluate_answers(task, logits, labels, rows(4), max_mistakes=1).mistakes) == 1


def test_example_losses_average_to_the_score():
    task = SequenceClassification(kind="binary", labels=("n", "y"), metric="f1", temperature=2.0)
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    got = example_losses(task, logits, labels).mean()
    assert got == pytest.approx(log_loss(task.probabilities(logits), labels))


def test_several_labels():
    task = SequenceClassification(kind="multilabel", labels=("x", "y"), metric="f1_micro")
    logits, labels = np.array([[3.0, -3.0], [3.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    got = evaluate_answers(task, logits, labels, rows(2))
    assert got.confusion == ()
    assert [row.predicted for row in got.class_table] == [2, 1]
    assert [(m.truth, m.answer) for m in got.mistakes] == [("y", "x, y")]
    assert example_losses(task, logits, labels).mean() == pytest.approx(2 * got.scores["log_loss"])


def test_numbers():
    task = SequenceClassification(
        kind="regression", metric="pearson", target_mean=3.0, target_scale=2.0
    )
    got = evaluate_answers(task, np.array([[0.0], [1.0]]), np.array([0.0, 0.0]), rows(2))
    assert got.points == ((3.0, 3.0), (3.0, 5.0))
    assert [(m.truth, m.answer, m.loss) for m in got.mistakes] == [("3", "5", 4.0)]
    assert got.class_table == got.reliability == got.confusion == ()


def test_many_points_are_thinned():
    task = SequenceClassification(kind="regression", metric="pearson")
    count = MAX_POINTS * 2 + 1
    numbers = np.arange(count, dtype=float)
    got = evaluate_answers(task, numbers[:, None], numbers, rows(count))
    assert MAX_POINTS / 2 < len(got.points) <= MAX_POINTS
    assert got.mistakes == ()


def test_parts_of_different_evaluations_are_refused():
    task = SequenceClassification(kind="binary", labels=("a", "b"), metric="accuracy")
    with pytest.raises(DataError, match="2 answers, 2 labels and 3 examples"):
        evaluate_answers(task, np.zeros((2, 2)), np.zeros(2, dtype=int), rows(3))
