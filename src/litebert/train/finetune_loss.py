"""The loss on labels with label smoothing, class weights and R-Drop, as sums over targets."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from litebert.data.batch import Batch
from litebert.errors import DataError, SettingsError
from litebert.model.losses import LossTerm
from litebert.train.chance import IGNORED_LABEL, chance_loss
from litebert.train.micro import DeviceBatch, LabelledLoss, forward_packed

__all__ = ["FinetuneLoss", "LabelKind"]

LabelKind = Literal["classes", "subset", "number"]
"""One class of a row of logits, 0/1 for each class, or a number."""


class FinetuneLoss:
    """A `StepLoss` of the term `loss` and, with R-Drop, `r_drop`.

    - Label smoothing e: the target is (1 - e) of the label and e spread evenly over all classes; a
      0/1 label becomes e/2 or 1 - e/2. Source: Szegedy et al. 2016, section 7.
    - Class weights multiply the loss of a row, and the sum is divided by the number of rows.
      Differs from PyTorch: that divides by the sum of weights in the batch, so that an example
      counts more beside common ones, and micro-batches would not add up.
    - R-Drop: two passes with different dropout; the mean of both losses, plus alpha times
      (KL(p, q) + KL(q, p)) / 2; for numbers the squared difference. Source: Liang et al. 2021,
      equations 2 and 3. Differs from the paper's equation 4: the mean of both losses, not the sum.
    """

    def __init__(
        self,
        kind: LabelKind,
        *,
        num_classes: int | None = None,
        label_smoothing: float = 0.0,
        class_weights: Float[np.ndarray, "C ..."] | None = None,
        r_drop: float = 0.0,
    ) -> None:
        """Set it up.

        Args:
            kind: of labels.
            num_classes: C of `classes`, for `chance`; None: as many as there are labels.
            label_smoothing: e, in [0, 1).
            class_weights: [C], or [C, 2] for `subset`; None: 1.
            r_drop: alpha, >= 0.

        Raises:
            SettingsError: smoothing or weights of numbers.
        """
        if kind == "number" and (label_smoothing or class_weights is not None):
            raise SettingsError(
                "loss.label_smoothing and loss.class_weights are for classes, but the labels are "
                "numbers; leave them out"
            )
        self.weights = {"loss": 1.0} | ({"r_drop": r_drop} if r_drop else {})
        self._kind, self._smoothing, self._table = kind, label_smoothing, class_weights
        self._num_classes = num_classes

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of labelled examples or tokens, for each term.

        Raises:
            DataError: the batch has no labels.
        """
        return dict.fromkeys(self.weights, LabelledLoss().counts(batch)["loss"])

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the terms, summed over the targets.

        Raises:
            DataError: the batch has no labels, or not one for each row of logits.
        """
        labels = batch.labels
        if labels is None:
            raise DataError("the training examples have no labels; give a labelled file")
        is_double = "r_drop" in self.weights
        passes = [self._logits(model, batch) for _ in range(2 if is_double else 1)]
        rows = self.labelled_rows(labels)
        if len(passes[0]) != len(labels):
            raise DataError(
                f"{len(labels)} labels for {len(passes[0])} rows of logits; smoothing, class weights "
                "and R-Drop are for labels of texts or of tokens"
            )
        passes, labels, count = [logits[rows] for logits in passes], labels[rows], rows.sum()
        total = torch.stack([self.total(logits, labels) for logits in passes]).mean()
        terms = [LossTerm("loss", total, count)]
        if is_double:
            terms.append(LossTerm("r_drop", self._disagreement(*passes), count))
        return tuple(terms)

    def chance(self, labels: NDArray[Any]) -> float | None:
        """Return the mean loss of the best constant answer; it has no disagreement."""
        if self._kind == "classes":
            labels = labels[labels != IGNORED_LABEL]
        if self._kind == "number" or not labels.size:
            return chance_loss(labels)
        if self._kind == "classes":
            width = self._num_classes or 1 + int(labels.max(initial=0))
            targets = np.eye(width)[labels]
        else:
            targets, width = labels.astype(np.float64), labels.shape[1]
        weights = self._numpy_weights(labels)
        even = 1 / width if self._kind == "classes" else 0.5
        targets = (1 - self._smoothing) * targets + self._smoothing * even
        mass = weights.sum(0)
        answer = np.clip((weights * targets).sum(0) / mass, 1e-12, 1 - 1e-12)
        losses = -np.log(answer) * answer
        if self._kind == "classes":
            found = float(losses.sum() * mass[0] / len(labels))
        else:
            losses = losses - np.log(1 - answer) * (1 - answer)
            found = float((losses * mass / len(labels)).mean())
        return found if found > 1e-9 else None

    @staticmethod
    def _logits(model: nn.Module, batch: DeviceBatch) -> Float[Tensor, "rows C"]:
        logits = forward_packed(model, batch, labels=None).logits
        return logits.float().reshape(len(logits), -1)

    def labelled_rows(self, labels: Shaped[Tensor, "N ..."]) -> Bool[Tensor, " N"]:
        """Return which rows have a label."""
        if self._kind == "classes":
            return labels != IGNORED_LABEL
        return torch.ones(len(labels), dtype=torch.bool, device=labels.device)

    def divergence(
        self, target: Float[Tensor, "N C"], logits: Float[Tensor, "N C"]
    ) -> Float[Tensor, ""]:
        """Return KL(target, logits) summed over rows; of numbers the squared difference."""
        if self._kind == "number":
            return (logits - target).square().sum()
        if self._kind == "classes":
            a, b = functional.log_softmax(target, dim=-1), functional.log_softmax(logits, dim=-1)
            return (a.exp() * (a - b)).sum()
        wrong = functional.binary_cross_entropy_with_logits
        p = target.sigmoid()
        return (
            (wrong(logits, p, reduction="none") - wrong(target, p, reduction="none")).mean(1).sum()
        )

    def total(
        self, logits: Float[Tensor, "N C"], labels: Shaped[Tensor, "N ..."]
    ) -> Float[Tensor, ""]:
        """Return the loss summed over rows that all have a label."""
        smoothing, weights = self._smoothing, self._row_weights(labels)
        if self._kind == "number":
            return functional.mse_loss(logits, labels.view(logits.shape).float(), reduction="sum")
        if self._kind == "classes":
            logs = functional.log_softmax(logits, dim=-1)
            losses = -logs.gather(1, labels[:, None])[:, 0]
            if smoothing:
                losses = (1 - smoothing) * losses - smoothing * logs.mean(1)
            return (losses if weights is None else losses * weights).sum()
        targets = (1 - smoothing) * labels.float() + smoothing / 2
        losses = functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        return (losses if weights is None else losses * weights).mean(1).sum()

    def _disagreement(self, one: Float[Tensor, "N C"], two: Float[Tensor, "N C"]) -> Tensor:
        """Mean of both divergences, summed over rows."""
        if self._kind == "number":
            return (one - two).square().sum()
        if self._kind == "classes":
            a, b = functional.log_softmax(one, dim=-1), functional.log_softmax(two, dim=-1)
            return ((a.exp() - b.exp()) * (a - b)).sum() / 2
        return ((one.sigmoid() - two.sigmoid()) * (one - two)).mean(1).sum() / 2

    def _row_weights(self, labels: Tensor) -> Tensor | None:
        """[N] for classes, [N, C] for subsets."""
        if self._table is None:
            return None
        table = torch.as_tensor(self._table, dtype=torch.float32, device=labels.device)
        if self._kind == "classes":
            return table[labels]
        return torch.where(labels > 0.5, table[:, 1], table[:, 0])

    def _numpy_weights(self, labels: NDArray[Any]) -> NDArray[Any]:
        """[N, 1] for classes, [N, C] for subsets."""
        if self._table is None:
            return np.ones((len(labels), 1 if self._kind == "classes" else labels.shape[1]))
        if self._kind == "classes":
            return self._table[labels][:, None]
        return np.where(labels > 0.5, self._table[:, 1], self._table[:, 0])
