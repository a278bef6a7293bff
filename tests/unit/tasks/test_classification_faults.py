"""Collapsed answers and mixed-up labels are called by their name; honest mistakes are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks.classification import SequenceClassification
from litebert.tasks.classification_faults import below_chance, classification_faults

RNG = np.random.default_rng(4)


def make(
    kind: str, labels: tuple[str, ...] = ("bad", "good", "odd"), **more: Any
) -> SequenceClassification:
    metric = {"regression": "pearson", "multilabel": "f1_micro"}.get(kind, "accuracy")
    names = {} if kind == "regression" else {"labels": labels}
    return SequenceClassification.model_validate({"kind": kind, "metric": metric} | names | more)


def logits(answers: Any, classes: int) -> np.ndarray:
    return np.eye(classes)[np.asarray(answers)] * 4.0


def test_one_answer_to_everything() -> None:
    truth = np.array([0] * 30 + [1] * 10)
    (fault,) = classification_faults(make("binary", ("no", "yes")), logits([0] * 40, 2), truth)
    assert "all 40 answers are 'no', which is right for 75.0%" in fault
    assert "ignores the texts" in fault
    right = np.zeros(40, int)
    assert classification_faults(make("binary", ("no", "yes")), logits(right, 2), right) == []


def test_labels_that_are_swapped() -> None:
    truth = np.array([0, 1] * 30)
    answers = np.where(RNG.uniform(size=60) < 0.9, 1 - truth, truth)
    (fault,) = classification_faults(make("binary", ("no", "yes")), logits(answers, 2), truth)
    assert "labelled 'no' is mostly answered 'yes'" in fault and "likely swapped" in fault
    three = np.arange(60) % 3
    (fault,) = classification_faults(make("multiclass"), logits((three + 1) % 3, 3), three)
    assert "right for 0.0%, but would be for 100.0%" in fault


@given(st.integers(0, 10_000), st.floats(0.4, 1.0))
def test_a_weak_model_is_not_accused(seed: int, skill: float) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 90)
    answers = np.where(rng.uniform(size=90) < skill, truth, rng.integers(0, 3, 90))
    assert classification_faults(make("multiclass"), logits(answers, 3), truth) == []


def test_worse_than_any_constant_answer() -> None:
    task = make("binary", ("no", "yes"))
    truth = np.array([0] * 30 + [1] * 10)
    (fault,) = below_chance(task, 0.0, truth)
    assert "right for 0.0%, less than always answering the rarest label gives (25.0%)" in fault
    assert below_chance(task, 0.2, truth) == below_chance(task, None, truth) == []
    assert below_chance(task, 0.0, truth[:10]) == below_chance(task, 0.0, truth[:30]) == []
    assert below_chance(make("multilabel"), 0.0, np.zeros((40, 3))) == []


def test_too_few_answers_prove_nothing() -> None:
    truth = np.arange(19) % 2
    assert classification_faults(make("binary", ("a", "b")), logits([0] * 19, 2), truth) == []


def test_no_label_is_ever_answered() -> None:
    truth = np.zeros((40, 3), np.float32)
    truth[:20, 0] = 1
    (fault,) = classification_faults(make("multilabel"), np.full((40, 3), -3.0), truth)
    assert "no label is ever answered, though the texts have 0.5 each" in fault
    one = np.tile([3.0, -3.0, -3.0], (40, 1))
    (fault,) = classification_faults(make("multilabel"), one, truth)
    assert "same set of labels" in fault
    assert classification_faults(make("multilabel"), truth * 6 - 3, truth) == []
    assert classification_faults(make("multilabel"), one, np.zeros((40, 3), np.float32)) == []


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (np.full(40, 0.3), "all 40 answers are about 3.6, the mean"),
        (-np.linspace(-1, 1, 40), "likely reversed"),
        (np.linspace(-1, 1, 40), ""),
        (np.linspace(-1, 1, 40) * 0.1, ""),
    ],
)
def test_numbers(answers: np.ndarray, words: str) -> None:
    task = make("regression", target_mean=3.0, target_scale=2.0)
    found = classification_faults(task, answers[:, None], np.linspace(-1, 1, 40))
    assert (words in found[0]) if words else found == []
    assert classification_faults(task, answers[:, None], np.full(40, 0.5)) == []
