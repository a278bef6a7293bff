"""What objectives use of a batch of tensors; whoever trains has a class of this shape."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

from litebert.model.packing import Packing
from litebert.objectives.base import IGNORED

__all__ = ["TensorBatch", "predicted"]


class TensorBatch(Protocol):
    """What is used of a batch on the device."""

    @property
    def input_ids(self) -> Tensor:
        """[T] corrupted ids."""
        ...

    @property
    def packing(self) -> Packing:
        """Bounds of the sequences."""
        ...

    @property
    def token_type_ids(self) -> Tensor:
        """[T] segment of each token."""
        ...

    @property
    def position_ids(self) -> Tensor:
        """[T] place of each token in its sequence."""
        ...

    @property
    def labels(self) -> Tensor | None:
        """[T] original ids at predicted places, -100 elsewhere."""
        ...

    @property
    def order_labels(self) -> Tensor | None:
        """[N] 0, 1, or -100; None: none."""
        ...

    @property
    def example_index(self) -> Any:
        """[N] sample numbers, on the host."""
        ...


def predicted(batch: TensorBatch) -> tuple[Tensor, Tensor]:
    """Places [P] where something is predicted, and the ids [P] there."""
    if batch.labels is None:
        empty = batch.input_ids.new_zeros(0)
        return empty, empty
    places = (batch.labels != IGNORED).nonzero().view(-1)
    return places, batch.labels.index_select(0, places)
