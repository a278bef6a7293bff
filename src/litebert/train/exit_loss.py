"""The loss of a model that answers after each depth: one for each, weighted, and all in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.losses import LossTerm
from litebert.model.stepwise import Stepwise
from litebert.train.finetune_loss import FinetuneLoss
from litebert.train.micro import DeviceBatch

__all__ = ["ExitLoss"]


class ExitLoss:
    """A `StepLoss` of the term `loss` and, with distillation, `exit_distill`.

    - `loss`: mean of the losses of all depths, weighted by w_d = d / sum of all d, or equally. Source:
      Zhou et al. 2020, BERT Loses Patience, equation 4; Kaya et al. 2019.
    - `exit_distill`: mean, weighted alike over all depths but the deepest, of the divergence of their
      answers from the deepest one's, which takes no gradient from it: KL of the distributions, mean
      over the classes of that of each yes or no, or squared difference of numbers. Source: Liu et al. 2020,
      FastBERT, equation 8. Differs from it: trained together with the labels, not afterwards.

    Where the encoder is made to stop early (`set_active_depth`), the deepest is where it stops.
    """

    def __init__(
        self,
        loss: FinetuneLoss,
        *,
        depth_weights: Literal["depth", "equal"] = "depth",
        first_depth: int = 1,
        distill: float = 0.0,
    ) -> None:
        """Set it up.

        Args:
            loss: of one row of logits on the labels, without R-Drop.
            depth_weights: how much depth d counts.
            first_depth: shallowest depth that counts.
            distill: weight of the divergence, >= 0.

        Raises:
            SettingsError: R-Drop.
        """
        if "r_drop" in loss.weights:
            raise SettingsError(
                "loss.r_drop compares two passes and exits.heads the depths of one; choose one of them "
                "(exits.distill makes depths agree)"
            )
        self.weights = {"loss": 1.0} | ({"exit_distill": distill} if distill else {})
        self._loss, self._law, self._first = loss, depth_weights, first_depth

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of labelled examples or tokens, for each term.

        Raises:
            DataError: the batch has no labels.
        """
        return dict.fromkeys(self.weights, self._loss.counts(batch)["loss"])

    def chance(self, labels: NDArray[Any]) -> float | None:
        """Return the mean loss of the best constant answer; its depths agree."""
        return self._loss.chance(labels)

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the terms, summed over the targets.

        Raises:
            DataError: the batch has no labels.
            SettingsError: a model without exit heads, or with fewer depths than `first_depth`.
        """
        if batch.labels is None:
            raise DataError("the training examples have no labels; give a labelled file")
        answers = self._answers(model, batch)
        rows = self._loss.labelled_rows(batch.labels)
        labels, count = batch.labels[rows], rows.sum()
        answers = [logits[rows] for logits in answers]
        weights = self._weights(len(answers))
        parts = [
            w * self._loss.total(logits, labels) for w, logits in zip(weights, answers, strict=True)
        ]
        terms = [LossTerm("loss", torch.stack(parts).sum() + _idle(model), count)]
        if "exit_distill" in self.weights:
            terms.append(LossTerm("exit_distill", self._distill(answers), count))
        return tuple(terms)

    def _answers(self, model: nn.Module, batch: DeviceBatch) -> list[Float[Tensor, "rows C"]]:
        """Logits of each depth from the first that counts, in float32."""
        if not isinstance(model, AlbertWithHead) or model.exits is None:
            raise SettingsError(
                "exits.heads trains a classifier of each depth, and this model has none; set "
                "model.config.litebert.exit_heads = true, on a model with two depths or more"
            )
        depths = model.model.encoder.num_depths
        if self._first > depths:
            raise SettingsError(
                f"exits.first_depth is {self._first}, but {depths} depths run; give at most that"
            )
        run = Stepwise(
            model, batch.input_ids, batch.packing, batch.token_type_ids, batch.position_ids
        )
        answers: list[Tensor] = []
        while run.depth < depths:
            run.advance()
            if run.depth >= self._first:
                logits = run.logits().float()
                answers.append(logits.reshape(len(logits), -1))
        return answers

    def _weights(self, count: int) -> list[float]:
        """Of the depths from the first that counts; they add up to 1."""
        raw = [float(self._first + i) if self._law == "depth" else 1.0 for i in range(count)]
        return [weight / sum(raw) for weight in raw]

    def _distill(self, answers: Sequence[Float[Tensor, "N C"]]) -> Tensor:
        *shallow, deepest = answers
        if not shallow:
            return deepest.sum() * 0
        weights = self._weights(len(shallow))
        teacher = deepest.detach()
        parts = [
            w * self._loss.divergence(teacher, logits)
            for w, logits in zip(weights, shallow, strict=True)
        ]
        return torch.stack(parts).sum()


def _idle(model: nn.Module) -> Tensor:
    """Zero, with a gradient of zero for the classifiers that did not run.

    Every weight then has a gradient at every step, which exchange between ranks counts on.
    """
    parts = [*model.get_submodule("heads").parameters(), *model.get_submodule("exits").parameters()]
    return torch.stack([weight.float().sum() for weight in parts]).sum() * 0
