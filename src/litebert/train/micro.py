"""A step's batch as micro-batches, so that memory is bounded and the gradient is the same.

Each micro-batch counts by its part of the whole batch's examples (or labelled tokens), so the
accumulated gradient is that of the unsplit batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from litebert.data.batch import Batch, split_batch
from litebert.errors import DataError
from litebert.model.packing import Packing
from litebert.train.chance import IGNORED_LABEL
from litebert.train.precision import Precision


@dataclass(frozen=True, slots=True, eq=False)
class DeviceBatch:
    """A packed batch as tensors: what `forward_packed` takes."""

    input_ids: Int[Tensor, " T"]
    packing: Packing
    token_type_ids: Int[Tensor, " T"]
    position_ids: Int[Tensor, " T"]
    labels: Tensor | None
    """int64 [N], float32 [N], float32 [N, C], or int64 [T]."""


class StepLoss(Protocol):
    """The loss that a run minimises."""

    def count(self, batch: Batch) -> int:
        """Return how many terms (examples, labelled tokens) the mean loss of `batch` is over."""
        ...

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> Tensor:
        """Return the mean loss over the terms of `batch`, a scalar with gradient."""
        ...


class LabelledLoss:
    """The model's own loss on the labels of the batch."""

    def count(self, batch: Batch) -> int:
        """Return the number of labelled examples or tokens.

        Raises:
            DataError: the batch has no labels.
        """
        if batch.labels is None:
            raise DataError("the training examples have no labels; give a labelled file")
        if np.issubdtype(batch.labels.dtype, np.integer):
            return int((batch.labels != IGNORED_LABEL).sum())
        return len(batch.labels)

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> Tensor:
        """Return the model's mean loss."""
        output = forward_packed(model, batch, labels=batch.labels)
        return output.loss


def to_device(batch: Batch, device: torch.device) -> DeviceBatch:
    """Copy a numpy batch to tensors on `device`."""

    def move(array: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)

    return DeviceBatch(
        input_ids=move(batch.input_ids).long(),
        packing=Packing.from_lengths(batch.lengths.tolist(), device=device),
        token_type_ids=move(batch.token_type_ids).long(),
        position_ids=move(batch.position_ids).long(),
        labels=None if batch.labels is None else move(batch.labels),
    )


def forward_packed(model: nn.Module, batch: DeviceBatch, labels: Tensor | None) -> Any:
    """Call the model on a packed batch; the result has `.loss` and `.logits`."""
    run: Any = model.forward_packed
    return run(
        batch.input_ids, batch.packing, batch.token_type_ids, batch.position_ids, labels=labels
    )


def accumulate_gradient(
    model: nn.Module,
    batch: Batch,
    step_loss: StepLoss,
    *,
    micro_batch_tokens: int,
    device: torch.device,
    precision: Precision,
    scaler: torch.amp.GradScaler | None = None,
) -> float:
    """Add the gradient of the mean loss of `batch` to the parameters; return that loss.

    Args:
        model: its gradients should be empty before.
        batch: all examples of the step.
        step_loss: what to minimise.
        micro_batch_tokens: most real tokens per forward pass.
        device: where the model is.
        precision: number type of the forward pass.
        scaler: scales the loss for float16.
    """
    total = step_loss.count(batch)
    loss_sum = torch.zeros((), dtype=torch.float32, device=device)
    for micro in split_batch(batch, micro_batch_tokens):
        count = step_loss.count(micro)
        if count == 0:
            continue
        with precision.autocast():
            share = step_loss(model, to_device(micro, device)) * (count / total)
        (share if scaler is None else scaler.scale(share)).backward()
        loss_sum += share.detach()
    return float(loss_sum)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller micro-batch could cure the error."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text
    )
