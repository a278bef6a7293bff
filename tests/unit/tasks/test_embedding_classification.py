"""A linear head on vectors acts as a classification task and survives its file."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import ValidationError

from litebert.errors import CheckpointError, DataError
from litebert.tasks import parse_task
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.embedding_classification import EmbeddingClassification

PLAIN = SequenceClassification(kind="multiclass", labels=("a", "b", "c"), metric="accuracy")
RNG = np.random.default_rng(0)
WEIGHTS, BIASES = RNG.normal(size=(3, 5)), RNG.normal(size=3)
TASK = EmbeddingClassification.from_head(PLAIN, WEIGHTS, BIASES)


def test_vectors_are_scaled_and_classified_as_by_hand() -> None:
    vectors = RNG.normal(size=(40, 5)) * 7
    logits = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ WEIGHTS.T + BIASES
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(TASK.probabilities(vectors), expected, atol=1e-6)
    assert [p.label for p in TASK.decode(vectors)] == [p.label for p in PLAIN.decode(logits)]
    labels = RNG.integers(0, 3, 40)
    assert TASK.score(vectors, labels)["accuracy"] == PLAIN.score(logits, labels)["accuracy"]
    warm = TASK.calibrated(vectors, labels)
    assert isinstance(warm, EmbeddingClassification) and warm.temperature != 1.0
    assert TASK.probabilities(np.zeros((1, 5))).shape == (1, 3)
    # scores of a baseline, which has no vectors
    np.testing.assert_allclose(TASK.probabilities(logits), expected, atol=1e-9)


def test_the_task_survives_its_file() -> None:
    again = parse_task(TASK.to_json())
    assert again == TASK and again.head == "embedding" and again.name == "embedding_classification"
    assert TASK.pooling == "mean"
    values = json.loads(TASK.to_json())
    for wrong in (
        {"weights": values["weights"][:2]},
        {"weights": [[1.0], [1.0, 2.0], [1.0]]},
        {"weights": [[1.0, 2.0, 3.0]] * 3},  # as wide as there are labels
        {"weights": [[], [], []]},
        {"weights": "x"},
        {"biases": [0.0]},
        {"kind": "multilabel"},
    ):
        with pytest.raises(CheckpointError):
            parse_task(json.dumps(values | wrong))


def test_other_widths_and_broken_numbers_are_refused() -> None:
    for vectors in (np.zeros((2, 4)), np.zeros(5), np.full((2, 5), np.nan)):
        with pytest.raises(DataError):
            TASK.decode(vectors)
    with pytest.raises(ValidationError):
        EmbeddingClassification.from_head(PLAIN, WEIGHTS[:2], BIASES)
