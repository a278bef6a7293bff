"""Losses of the heads, as sum and count, so that micro-batches add up to the whole batch exactly.

All are computed in float32. Positions labelled -100 do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn import functional

from litebert.errors import DataError
from litebert.model.packing import Packing

__all__ = [
    "IGNORE_INDEX",
    "LossTerm",
    "choice_loss",
    "classification_loss",
    "cross_entropy",
    "problem_type_of",
    "span_loss",
]

IGNORE_INDEX: Final = -100
"""Label of a position that has no target, as in PyTorch and transformers."""


@dataclass(frozen=True, slots=True)
class LossTerm:
    """One summed loss.

    Attributes:
        name: what is learnt.
        total: sum over the targets, in nats or squared units; a scalar with gradient.
        count: number of targets; a scalar.
    """

    name: str
    total: Tensor
    count: Tensor

    @property
    def mean(self) -> Tensor:
        """Mean over the targets; 0 if there are none (transformers gives NaN then)."""
        return self.total / self.count.clamp_min(1)


def cross_entropy(
    name: str, logits: Float[Tensor, "rows C"], labels: Int[Tensor, " rows"]
) -> LossTerm:
    """Return the softmax cross-entropy of integer labels in [0, C), or -100 for none.

    Raises:
        DataError: a label outside, labels that are no integers, or another number of labels than
            rows.
    """
    if labels.is_floating_point() or labels.is_complex():
        raise DataError(
            f"{name}: labels are of {labels.dtype}, expected class indices of torch.int64; for 0/1 "
            "targets of several labels set problem_type to multi_label_classification"
        )
    labels = labels.reshape(-1).to(device=logits.device, dtype=torch.int64)
    if labels.shape[0] != logits.shape[0]:
        raise DataError(
            f"{name}: {labels.shape[0]} labels for {logits.shape[0]} predictions; give one label each, "
            f"{IGNORE_INDEX} where there is none"
        )
    try:
        total = functional.cross_entropy(
            logits.float(), labels, ignore_index=IGNORE_INDEX, reduction="sum"
        )
    except IndexError as error:
        raise DataError(
            f"{name}: labels go from {int(labels.min())} to {int(labels.max())}, allowed are 0 to "
            f"{logits.shape[-1] - 1}, or {IGNORE_INDEX} for none"
        ) from error
    return LossTerm(name, total, (labels != IGNORE_INDEX).sum())


def problem_type_of(num_labels: int, labels: Tensor) -> str:
    """Return the problem type that unstated labels mean, by the rule of transformers."""
    if num_labels == 1:
        return "regression"
    return (
        "multi_label_classification"
        if labels.is_floating_point()
        else "single_label_classification"
    )


def classification_loss(
    name: str,
    logits: Float[Tensor, "N C"],
    labels: Shaped[Tensor, "N ..."],
    problem_type: str | None,
) -> LossTerm:
    """Return the loss of a sequence head.

    Args:
        name: what is learnt.
        logits: one row for each sequence.
        labels: class index [N]; or 0/1 for each class [N, C]; or numbers [N] or [N, C].
        problem_type: `single_label_classification` (cross-entropy), `multi_label_classification`
            (binary cross-entropy, mean over classes too) or `regression` (squared error);
            None: as the labels suggest.

    Raises:
        DataError: labels of another shape, or outside the classes.
    """
    kind = problem_type or problem_type_of(logits.shape[-1], labels)
    if kind == "single_label_classification":
        return cross_entropy(name, logits, labels)
    if labels.numel() != logits.numel():
        raise DataError(
            f"{name}: labels of shape {tuple(labels.shape)} for logits of {tuple(logits.shape)}; "
            f"{kind} needs one number for each output"
        )
    targets = labels.to(device=logits.device, dtype=torch.float32).view(logits.shape)
    if kind == "regression":
        total = functional.mse_loss(logits.float(), targets, reduction="sum")
    else:
        total = functional.binary_cross_entropy_with_logits(
            logits.float(), targets, reduction="sum"
        )
    return LossTerm(name, total, torch.tensor(logits.numel(), device=logits.device))


def choice_loss(
    logits: Float[Tensor, " N"], labels: Int[Tensor, " G"], group_sizes: Int[Tensor, " G"]
) -> LossTerm:
    """Return the cross-entropy of the right choice among those of its question.

    Args:
        logits: one for each choice, questions one after the other.
        labels: index of the right choice of each question, or -100.
        group_sizes: choices of each question, in sum N.

    Raises:
        DataError: a label that is no choice of its question.
    """
    rows = torch.split(logits.float(), group_sizes.tolist())
    table = torch.nn.utils.rnn.pad_sequence(
        list(rows), batch_first=True, padding_value=torch.finfo(torch.float32).min
    )  # [G, C]
    beyond = labels.to(group_sizes.device) >= group_sizes
    if bool(beyond.any()):
        where = int(beyond.nonzero()[0])
        raise DataError(
            f"choice: label {int(labels[where])} for a question with {int(group_sizes[where])} "
            f"choices; allowed are 0 to {int(group_sizes[where]) - 1}, or {IGNORE_INDEX} for none"
        )
    return cross_entropy("choice", table, labels)


def span_loss(
    logits: Float[Tensor, "T 2"], labels: Int[Tensor, "N 2"], packing: Packing
) -> LossTerm:
    """Return the cross-entropy of start and end over the tokens of each sequence.

    Args:
        logits: start and end logit of each token.
        labels: start and end position: columns of the padded batch, or places in the sequence if
            there was none. A position beyond the sequence or on padding does not count; a negative
            one means the first token, as in transformers.
        packing: bounds of the sequences.

    Raises:
        DataError: labels that are not [N, 2].

    Differs from transformers: padding takes no part in the softmax there and here only in ours,
    so the loss does not depend on how a batch was padded.
    """
    if labels.ndim != 2 or labels.shape[1] != 2 or labels.shape[0] != packing.num_sequences:
        raise DataError(
            f"span labels must be [{packing.num_sequences}, 2] (start, end), got {tuple(labels.shape)}"
        )
    scores = logits.float()
    padded = packing.unpack(scores, fill=torch.finfo(scores.dtype).min)  # [B, S, 2]
    width = padded.shape[1]
    real = packing.mask()
    positions = labels.to(device=logits.device, dtype=torch.int64).clamp(0, width)
    inside = positions.clamp(max=width - 1)
    counts = (positions < width) & real.gather(1, inside)
    targets = torch.where(counts, positions, IGNORE_INDEX)
    total = functional.cross_entropy(padded, targets, ignore_index=IGNORE_INDEX, reduction="none")
    # Start and end are averaged apart, then with each other: weigh each side by its own count.
    sides = total.sum(0) / counts.sum(0).clamp_min(1)
    return LossTerm("span", sides.mean(), torch.ones((), device=logits.device))
