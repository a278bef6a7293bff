"""The losses of distillation, each a sum over its own targets, in float32.

All are free of scale: a teacher with larger numbers gives no larger loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from litebert.errors import SettingsError

__all__ = [
    "hidden_loss",
    "pooled_loss",
    "relation_loss",
    "similarity_loss",
    "soft_label_loss",
]

TINY: Final = 1e-12


def soft_label_loss(
    student: Float[Tensor, "N C"],
    teacher: Float[Tensor, "N C"],
    temperature: float,
    problem_type: str | None = None,
) -> Tensor:
    """Return how far the student's answers are from the teacher's.

    Args:
        student: logits.
        teacher: logits.
        temperature: T, > 0; both are divided by it.
        problem_type: in the spelling of `config.json`; None: one class out of several.

    Returns:
        Sum over examples of T^2 KL(teacher || student), in nats. With several labels at once, that
        of each label's yes and no, the mean over labels. For numbers the squared difference.

    Source: Hinton et al. 2015, Distilling the Knowledge in a Neural Network, section 2.
    """
    if problem_type == "regression":
        return (student.float() - teacher.float()).square().sum(-1).sum()
    if problem_type == "multi_label_classification":
        pairs = [
            torch.stack((part.float(), torch.zeros_like(part.float())), -1)
            for part in (student, teacher)
        ]
        total = soft_label_loss(pairs[0].flatten(0, 1), pairs[1].flatten(0, 1), temperature)
        return total / student.shape[-1]
    own = functional.log_softmax(student.float() / temperature, -1)
    wanted = functional.log_softmax(teacher.float() / temperature, -1)
    divergence = functional.kl_div(own, wanted, reduction="sum", log_target=True)
    return divergence * temperature**2


def hidden_loss(student: Float[Tensor, "T D"], teacher: Float[Tensor, "T D"]) -> Tensor:
    """Return the sum over tokens of the squared difference over the teacher's squared norm.

    Source: Jiao et al. 2020, TinyBERT, equation 8. Differs from it: relative, not absolute.
    """
    teacher = teacher.float()
    gap = (student.float() - teacher).square().sum(-1)
    return (gap / teacher.square().sum(-1).clamp_min(TINY)).sum()


def pooled_loss(student: Float[Tensor, "N D"], teacher: Float[Tensor, "N D"]) -> Tensor:
    """Return the sum over sequences of 1 - cosine of the two vectors."""
    return (1 - functional.cosine_similarity(student.float(), teacher.float(), dim=-1)).sum()


def similarity_loss(
    student: Float[Tensor, "N H"], teacher: Float[Tensor, "N D"], temperature: float
) -> Tensor:
    """Return how far the sequences' likeness to each other differs; widths may differ.

    Row n of a matrix is the softmax over the other sequences of cosine / temperature.

    Args:
        student: vectors.
        teacher: vectors.
        temperature: > 0.

    Returns:
        Sum over sequences of KL(teacher || student), in nats; 0 for fewer than three sequences.

    Source: Fang et al. 2021, SEED, equation 3. Differs from it: the batch instead of a queue.
    """
    if len(student) < 3:
        return student.float().sum() * 0.0
    rows = [_likeness(vectors, temperature) for vectors in (student, teacher)]
    return functional.kl_div(rows[0], rows[1], reduction="sum", log_target=True)


def relation_loss(
    student: Float[Tensor, "T F"],
    teacher: Float[Tensor, "T G"],
    lengths: Sequence[int],
    heads: int,
) -> Tensor:
    """Return how far query-query, key-key and value-value relations of tokens differ.

    Each of the three is cut into as many relation heads, whatever attention heads the models have.
    A relation is the softmax over the tokens of a sequence of the scaled products of its vectors.

    Args:
        student: query, key and value side by side, of equal widths.
        teacher: the same.
        lengths: tokens of each sequence; they add up to T.
        heads: relation heads R, a divisor of both widths.

    Returns:
        Sum over tokens of KL(teacher || student), the mean over the relation heads and the three.

    Raises:
        SettingsError: widths that cannot be cut so.

    Source: Wang et al. 2021, MiniLMv2, section 3.
    """
    for name, part in (("student", student), ("teacher", teacher)):
        if part.shape[-1] % (3 * heads):
            raise SettingsError(
                f"relation_heads is {heads}, but query, key and value of the {name} have "
                f"{part.shape[-1] // 3} numbers each; it must divide them"
            )
    total = student.new_zeros((), dtype=torch.float32)
    places = torch.cumsum(torch.tensor([0, *lengths]), 0).tolist()
    for length in sorted(set(lengths)):
        rows = torch.tensor([places[n] for n, own in enumerate(lengths) if own == length])
        index = (rows[:, None] + torch.arange(length)).to(student.device)  # [n, S]
        own = _relations(student[index], heads)
        wanted = _relations(teacher[index], heads)
        total = total + functional.kl_div(own, wanted, reduction="sum", log_target=True)
    return total / (3 * heads)


def _relations(vectors: Float[Tensor, "n S F"], heads: int) -> Float[Tensor, "n R3 S S"]:
    """Logarithms of the relations of one group of equally long sequences."""
    parts = vectors.float().unflatten(-1, (3 * heads, -1)).transpose(1, 2)  # [n, 3R, S, d]
    scores = parts @ parts.transpose(-1, -2) / parts.shape[-1] ** 0.5
    return functional.log_softmax(scores, -1)


def _likeness(vectors: Tensor, temperature: float) -> Float[Tensor, "N M"]:
    """Logarithm of the softmax over the other rows, [N, N - 1]."""
    with torch.autocast(vectors.device.type, enabled=False):
        unit = functional.normalize(vectors.float(), dim=-1)
        scores = unit @ unit.T / temperature
    count = len(scores)
    others = ~torch.eye(count, dtype=torch.bool, device=scores.device)
    return functional.log_softmax(scores[others].view(count, count - 1), -1)
