"""Cross-entropy of slots on words and of the intent on the first token, from one token head.

Each has its own columns: a word is never compared with intents, nor the first token with tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.errors import DataError
from litebert.model.losses import LossTerm, cross_entropy
from litebert.train.chance import IGNORED_LABEL
from litebert.train.micro import DeviceBatch, forward_packed

__all__ = ["JointTaggingLoss"]


class JointTask(Protocol):
    """What the loss needs to know of the task."""

    @property
    def num_tags(self) -> int: ...
    @property
    def slot_weight(self) -> float: ...
    @property
    def intent_weight(self) -> float: ...


class JointTaggingLoss:
    """A `StepLoss` of the terms `slots` and `intents`.

    A label below the number of tags is the tag of a word, one from there on an intent.
    """

    def __init__(self, task: JointTask) -> None:
        self.num_tags = task.num_tags
        self.weights: Mapping[str, float] = {
            "slots": task.slot_weight,
            "intents": task.intent_weight,
        }

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of tagged words and of intents.

        Raises:
            DataError: the batch has no labels.
        """
        labels = batch.labels
        if labels is None:
            raise DataError("the training examples have no labels; give a labelled file")
        kept = labels[labels != IGNORED_LABEL]
        intents = int((kept >= self.num_tags).sum())
        return {"slots": len(kept) - intents, "intents": intents}

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return both terms, summed over their targets.

        Raises:
            DataError: the batch has no labels, or one that the model has no output for.
        """
        labels = batch.labels
        if labels is None:
            raise DataError("the training examples have no labels; give a labelled file")
        logits: Tensor = forward_packed(model, batch, labels=None).logits
        is_intent = labels >= self.num_tags
        slots = labels.masked_fill(is_intent, IGNORED_LABEL)
        first = is_intent.nonzero()[:, 0]
        return (
            cross_entropy("slots", logits[:, : self.num_tags], slots),
            cross_entropy("intents", logits[first, self.num_tags :], labels[first] - self.num_tags),
        )
