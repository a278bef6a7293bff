"""The loss of a model that learns from labels and from the answers of the larger model it was cut from."""

from __future__ import annotations

from typing import Any, Final

import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.errors import DataError, SettingsError
from litebert.model.losses import LossTerm
from litebert.objectives.distill_losses import soft_label_loss
from litebert.train.finetune_loss import FinetuneLoss
from litebert.train.micro import DeviceBatch, forward_packed

__all__ = ["TEMPERATURE", "TeacherLoss"]

TEMPERATURE: Final = 2.0
"""Logits are divided by it before the softmax."""


class TeacherLoss:
    """A `StepLoss` of the terms `loss` (labels) and `teacher` (soft labels, asked for on each batch).

    Source: Hinton et al. 2015, Distilling the Knowledge in a Neural Network, section 2.
    """

    def __init__(
        self,
        loss: FinetuneLoss,
        teacher: nn.Module,
        *,
        share: float = 0.5,
        problem_type: str | None = None,
        ids: Int[Tensor, " V"] | None = None,
    ) -> None:
        """Set it up.

        Args:
            loss: of logits on the labels, without R-Drop.
            teacher: a model with the same head and classes; it is not trained.
            share: of the teacher in the loss, above 0 to 1; the labels have the rest.
            problem_type: in the spelling of `config.json`; None: one class out of several.
            ids: the teacher's id of each piece of the student; None: the same.

        Raises:
            SettingsError: R-Drop, or a share out of range.
        """
        if "r_drop" in loss.weights:
            raise SettingsError(
                "loss.r_drop compares two passes with each other, not with a teacher; leave it out"
            )
        if not 0.0 < share <= 1.0:
            raise SettingsError(f"the teacher's share is {share:g}; allowed are above 0 to 1")
        self.weights = {"loss": 1.0 - share, "teacher": share}
        self._loss, self._kind, self._ids = loss, problem_type, ids
        self._teacher = teacher.eval().requires_grad_(False)

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of labelled examples or tokens, for each term.

        Raises:
            DataError: the batch has no labels.
        """
        return dict.fromkeys(self.weights, self._loss.counts(batch)["loss"])

    def chance(self, labels: NDArray[Any]) -> float | None:  # noqa: ARG002
        """Return None: what a constant answer costs depends on the teacher."""
        return None

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the terms, summed over the labelled rows.

        Raises:
            DataError: the batch has no labels.
            SettingsError: student and teacher do not answer alike.
        """
        labels = batch.labels
        if labels is None:
            raise DataError("the training examples have no labels; give a labelled file")
        rows = self._loss.labelled_rows(labels)
        own = _rows(forward_packed(model, batch, labels=None).logits)
        wanted = self._answers(batch)
        if own.shape != wanted.shape:
            raise SettingsError(
                f"the model answers {tuple(own.shape)}, its teacher {tuple(wanted.shape)}; learn from "
                "a model with the same classes"
            )
        count = rows.sum()
        soft = soft_label_loss(own[rows], wanted[rows], TEMPERATURE, self._kind)
        total = self._loss.total(own[rows], labels[rows])
        return LossTerm("loss", total, count), LossTerm("teacher", soft, count)

    def _answers(self, batch: DeviceBatch) -> Float[Tensor, "rows C"]:
        self._teacher.to(batch.input_ids.device)
        ids = batch.input_ids
        if self._ids is not None:
            ids = self._ids.to(ids.device)[ids]
        run: Any = self._teacher.forward_packed
        with torch.no_grad():
            found = run(ids, batch.packing, batch.token_type_ids, batch.position_ids)
        return _rows(found.logits)


def _rows(logits: Tensor) -> Float[Tensor, "rows C"]:
    return logits.float().reshape(len(logits), -1)
