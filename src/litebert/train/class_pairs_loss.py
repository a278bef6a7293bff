"""Loss of texts of known classes: every two texts of a step are a pair, alike or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.errors import DataError
from litebert.model.losses import LossTerm
from litebert.train.micro import DeviceBatch
from litebert.train.similarity_loss import prefixes, text_vectors

__all__ = ["ClassPairsLoss"]

NO_CLASSES: Final = "texts are pulled together by class and these have none; name a label"


class ClassPairsLoss:
    """Squared error of cosines against 1 within a class and 0 between classes, over all pairs of a step.

    Both sorts weigh the same, however many there are. An example is one or more texts of one class, with
    the class for its label. A text does not count as alike to itself.

    Source: Tunstall et al. 2022, SetFit, where pairs are drawn. Differs from it: a text is encoded once
    for all its pairs of a step, so that far fewer texts are run.
    """

    def __init__(self) -> None:
        self.weights = {"class_pairs": 1.0}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of examples.

        Raises:
            DataError: the batch has no classes.
        """
        if batch.labels is None:
            raise DataError(NO_CLASSES)
        return {"class_pairs": batch.num_examples}

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the loss of a step that is not split, times its examples."""
        return (self.compare(self.vectors(model, batch), [batch]),)

    def vectors(self, model: nn.Module, batch: DeviceBatch) -> Float[Tensor, "N H"]:
        """Return the vector of each text, of any length."""
        return text_vectors(model, batch)

    def compare(self, vectors: Float[Tensor, "N H"], batches: Sequence[DeviceBatch]) -> LossTerm:
        """Return the loss over all texts of all micro-batches, times the examples."""
        classes = torch.cat([_classes(batch) for batch in batches])
        with torch.autocast(vectors.device.type, enabled=False):
            units = prefixes(vectors, ())[0]
            cosines = units @ units.T
        first, second = torch.triu_indices(
            len(classes), len(classes), offset=1, device=vectors.device
        )
        is_same = (classes[first] == classes[second]).float()
        error = (cosines[first, second] - is_same).square()
        parts = [
            (error * chosen).sum() / chosen.sum().clamp_min(1) for chosen in (is_same, 1 - is_same)
        ]
        count = sum(len(batch.labels) for batch in batches if batch.labels is not None)
        return LossTerm("class_pairs", (parts[0] + parts[1]) / 2 * count, torch.tensor(count))


def _classes(batch: DeviceBatch) -> Int[Tensor, " N"]:
    """Class of each text."""
    if batch.labels is None:
        raise DataError(NO_CLASSES)
    labels = batch.labels.long()
    return labels if batch.group_sizes is None else labels.repeat_interleave(batch.group_sizes)
