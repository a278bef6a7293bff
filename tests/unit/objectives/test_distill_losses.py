"""Losses of distillation against their definitions in plain numpy, gradients by differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import SettingsError
from litebert.objectives.distill_losses import (
    hidden_loss,
    pooled_loss,
    relation_loss,
    similarity_loss,
    soft_label_loss,
)

RTOL = 1e-4
"""Sums of float32 numbers against float64."""
GRADIENT_RTOL = 2e-2
"""Central differences of a float64 definition against float32 gradients."""


def softmax(rows: np.ndarray) -> np.ndarray:
    shifted = np.exp(rows - rows.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def divergence(teacher: np.ndarray, student: np.ndarray) -> float:
    p, q = softmax(teacher), softmax(student)
    return float((p * (np.log(p) - np.log(q))).sum())


def soft(student: np.ndarray, teacher: np.ndarray, temperature: float = 2.0) -> float:
    return temperature**2 * divergence(teacher / temperature, student / temperature)


def several(student: np.ndarray, teacher: np.ndarray, temperature: float = 1.5) -> float:
    total = 0.0
    for s, t in zip(student.ravel() / temperature, teacher.ravel() / temperature, strict=True):
        p, q = 1 / (1 + np.exp(-t)), 1 / (1 + np.exp(-s))
        total += p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    return temperature**2 * total / student.shape[-1]


def hidden(student: np.ndarray, teacher: np.ndarray) -> float:
    pairs = zip(student, teacher, strict=True)
    return sum(float(((s - t) ** 2).sum() / (t**2).sum()) for s, t in pairs)


def pooled(student: np.ndarray, teacher: np.ndarray) -> float:
    return sum(
        1 - float(s @ t / np.sqrt((s @ s) * (t @ t))) for s, t in zip(student, teacher, strict=True)
    )


def similarity(student: np.ndarray, teacher: np.ndarray, temperature: float = 0.3) -> float:
    total = 0.0
    for n in range(len(student)):
        rows = []
        for vectors in (teacher, student):
            unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            rows.append(np.delete(unit @ unit[n], n) / temperature)
        total += divergence(rows[0], rows[1])
    return total


def relation(
    student: np.ndarray, teacher: np.ndarray, lengths=(3, 1, 3, 2), heads: int = 2
) -> float:
    total, start = 0.0, 0
    for length in lengths:
        s, t = student[start : start + length], teacher[start : start + length]
        for part in range(3 * heads):
            rows = []
            for vectors in (t, s):
                size = vectors.shape[1] // (3 * heads)
                own = vectors[:, part * size : (part + 1) * size]
                rows.append(own @ own.T / np.sqrt(size))
            total += divergence(rows[0], rows[1])
        start += length
    return total / (3 * heads)


CASES: dict[str, tuple[Callable[..., torch.Tensor], Callable[..., float], tuple[int, int], int]] = {
    "soft": (lambda s, t: soft_label_loss(s, t, 2.0), soft, (5, 4), 4),
    "several": (
        lambda s, t: soft_label_loss(s, t, 1.5, "multi_label_classification"),
        several,
        (5, 4),
        4,
    ),
    "numbers": (
        lambda s, t: soft_label_loss(s, t, 1.0, "regression"),
        lambda s, t: float(((s - t) ** 2).sum()),
        (5, 1),
        1,
    ),
    "hidden": (hidden_loss, hidden, (7, 6), 6),
    "pooled": (pooled_loss, pooled, (5, 6), 6),
    "similarity": (lambda s, t: similarity_loss(s, t, 0.3), similarity, (6, 5), 8),
    "relation": (lambda s, t: relation_loss(s, t, (3, 1, 3, 2), 2), relation, (9, 12), 18),
}


@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.1, 1.0, 3.0]))
def test_values(name: str, seed: int, scale: float) -> None:
    ours, definition, (rows, width), theirs = CASES[name]
    rng = np.random.default_rng(seed)
    student, teacher = scale * rng.normal(size=(rows, width)), rng.normal(size=(rows, theirs))
    found = float(ours(torch.tensor(student).float(), torch.tensor(teacher).float()))
    assert found == pytest.approx(definition(student, teacher), rel=RTOL, abs=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    ours, definition, (rows, width), theirs = CASES[name]
    rng = np.random.default_rng(4)
    student, teacher = rng.normal(size=(rows, width)), rng.normal(size=(rows, theirs))
    given_student = torch.tensor(student, dtype=torch.float32, requires_grad=True)
    ours(given_student, torch.tensor(teacher).float()).backward()
    expected = np.zeros_like(student)
    for place in np.ndindex(*student.shape):
        moved = [student.copy(), student.copy()]
        moved[0][place] += 1e-5
        moved[1][place] -= 1e-5
        expected[place] = (definition(moved[0], teacher) - definition(moved[1], teacher)) / 2e-5
    assert given_student.grad is not None
    scale = np.abs(expected).max()
    assert np.allclose(given_student.grad.numpy(), expected, atol=GRADIENT_RTOL * scale)


@pytest.mark.parametrize("name", CASES)
def test_a_perfect_student_has_no_loss(name: str) -> None:
    ours, _, (rows, width), theirs = CASES[name]
    teacher = torch.randn(rows, theirs if name != "relation" else width)
    assert float(ours(teacher, teacher)) == pytest.approx(0.0, abs=1e-4)


def test_two_texts_have_no_likeness_to_compare() -> None:
    student = torch.randn(2, 4, requires_grad=True)
    similarity_loss(student, torch.randn(2, 4), 0.1).backward()
    assert torch.equal(student.grad, torch.zeros(2, 4))


def test_relation_heads_must_divide() -> None:
    with pytest.raises(SettingsError, match="relation_heads is 5, but query, key and value of the"):
        relation_loss(torch.randn(3, 12), torch.randn(3, 15), (3,), 5)
