"""A step's batch as micro-batches, so that memory is bounded and the gradient is the same.

Each loss term is a sum over its own targets (examples, masked tokens, pairs). Dividing every
micro-batch's sum by the targets of the whole batch makes the accumulated gradient that of the
unsplit batch, on one process or many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor, nn

from litebert.data.batch import Batch, split_batch
from litebert.errors import DataError
from litebert.model.losses import LossTerm
from litebert.model.packing import Packing
from litebert.train.chance import IGNORED_LABEL
from litebert.train.precision import Precision
from litebert.train.two_pass import ComparingLoss, TwoPassLoss

__all__ = [
    "DeviceBatch",
    "LabelledLoss",
    "StepLoss",
    "accumulate_gradient",
    "forward_packed",
    "is_out_of_memory",
    "to_device",
    "weighted_sum",
]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceBatch:
    """A packed batch as tensors: what `forward_packed` takes."""

    input_ids: Int[Tensor, " T"]
    packing: Packing
    token_type_ids: Int[Tensor, " T"]
    position_ids: Int[Tensor, " T"]
    labels: Tensor | None
    """int64 [N], float32 [N], float32 [N, C], or int64 [T]."""
    order_labels: Int[Tensor, " N"] | None = None
    """0 in order, 1 swapped, -100 unknown."""
    example_index: NDArray[np.int64] | None = None
    """[G] on the host."""
    group_sizes: Int[Tensor, " G"] | None = None
    """Sequences of each example; None: one each."""


class StepLoss(Protocol):
    """The loss that a run minimises: a weighted sum of the means of its terms."""

    @property
    def weights(self) -> Mapping[str, float]:
        """Term name -> weight."""
        ...

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return how many targets each term has in `batch`."""
        ...

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the terms, summed over the targets of `batch`, with gradient."""
        ...


class LabelledLoss:
    """The model's own loss on the labels of the batch."""

    def __init__(self) -> None:
        self.weights = {"loss": 1.0}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of labelled examples or tokens.

        Raises:
            DataError: the batch has no labels.
        """
        labels = batch.labels
        if labels is None:
            raise DataError("the training examples have no labels; give a labelled file")
        if labels.ndim == 1 and np.issubdtype(labels.dtype, np.integer):
            return {"loss": int((labels != IGNORED_LABEL).sum())}
        return {"loss": len(labels)}

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the model's loss."""
        labels = batch.labels
        loss: Tensor = forward_packed(model, batch, labels=labels).loss
        if labels is None:
            count = torch.tensor(batch.packing.num_sequences)
        elif labels.ndim > 1 or labels.is_floating_point():
            count = torch.tensor(len(labels))
        else:
            count = (labels != IGNORED_LABEL).sum()
        return (LossTerm("loss", loss * count, count),)


def to_device(batch: Batch, device: torch.device) -> DeviceBatch:
    """Copy a numpy batch to tensors on `device`."""

    def move(array: Any) -> Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(device, non_blocking=True)

    return DeviceBatch(
        input_ids=move(batch.input_ids).long(),
        packing=Packing.from_lengths(batch.lengths.tolist(), device=device),
        token_type_ids=move(batch.token_type_ids).long(),
        position_ids=move(batch.position_ids).long(),
        labels=None if batch.labels is None else move(batch.labels),
        order_labels=None if batch.order_labels is None else move(batch.order_labels),
        example_index=batch.example_index,
        group_sizes=None if batch.group_sizes is None else move(batch.group_sizes).long(),
    )


def forward_packed(model: nn.Module, batch: DeviceBatch, labels: Tensor | None) -> Any:
    """Call the model on a packed batch; the result has `.loss` and `.logits`."""
    run: Any = model.forward_packed
    grouped = {} if batch.group_sizes is None else {"group_sizes": batch.group_sizes}
    return run(
        batch.input_ids, batch.packing, batch.token_type_ids, batch.position_ids, labels=labels,
        **grouped,
    )  # fmt: skip


def accumulate_gradient(
    model: nn.Module,
    batch: Batch,
    step_loss: StepLoss,
    *,
    counts: Mapping[str, float],
    micro_batch_tokens: int,
    device: torch.device,
    precision: Precision,
    scaler: torch.amp.GradScaler | None = None,
) -> dict[str, float]:
    """Add the gradient of the loss of `batch` to the parameters; return the mean of each term.

    Args:
        model: its gradients should be empty before.
        batch: the examples of the step, or one rank's share of them.
        step_loss: what to minimise.
        counts: targets of each term in the whole step, over all ranks.
        micro_batch_tokens: most real tokens per forward pass.
        device: where the model is.
        precision: number type of the forward pass.
        scaler: scales the loss for float16.

    Returns:
        Term -> this share's part of the mean over the whole step.
    """
    names = [name for name, count in counts.items() if count]
    means = torch.zeros(len(names), dtype=torch.float32, device=device)
    micros = split_batch(batch, micro_batch_tokens)
    if len(micros) > 1 and isinstance(step_loss, ComparingLoss):
        with precision.autocast():
            step_loss = TwoPassLoss(step_loss, model, [to_device(m, device) for m in micros])
    for micro in micros:
        if not any(step_loss.counts(micro).values()):
            continue
        with precision.autocast():
            totals = {t.name: t.total for t in step_loss(model, to_device(micro, device))}
        shares = {name: totals[name] / counts[name] for name in names if name in totals}
        loss = torch.stack([step_loss.weights[name] * mean for name, mean in shares.items()]).sum()
        (loss if scaler is None else scaler.scale(loss)).backward()
        for position, name in enumerate(names):
            if name in shares:
                means[position] += shares[name].detach()
    return dict(zip(names, means.tolist(), strict=True))


def weighted_sum(means: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the loss that these means of terms make."""
    return sum(weights[name] * mean for name, mean in means.items())


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller micro-batch could cure the error."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text
    )
