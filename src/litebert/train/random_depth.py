"""Passes that end after a depth drawn at random, so that one set of weights answers at every depth."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from litebert.data.batch import Batch
from litebert.errors import SettingsError
from litebert.model.encoder import Encoder
from litebert.model.losses import LossTerm
from litebert.train.chance import KnowsChance, chance_loss
from litebert.train.micro import DeviceBatch, LabelledLoss, StepLoss

__all__ = ["RandomDepth", "depth_probabilities"]


class RandomDepth:
    """A `StepLoss` that lets another one see a model of a random depth, anew for each micro-batch.

    The number comes from the generator that dropout draws from, which is seeded at each step: a
    resumed run draws the same depths. Source: Fan et al. 2020, LayerDrop. Differs from it: that drops
    any layers; here a pass ends early, so that what was trained is what `--depth` runs.
    """

    def __init__(
        self, loss: StepLoss, law: Literal["uniform", "deep"] = "uniform", first_depth: int = 1
    ) -> None:
        """Wrap a loss.

        Args:
            loss: what to minimise at the drawn depth.
            law: of the depth; see `depth_probabilities`.
            first_depth: the smallest that is drawn.
        """
        self._loss, self._law, self._first = loss, law, first_depth

    @property
    def weights(self) -> Mapping[str, float]:
        """Term name -> weight."""
        return self._loss.weights

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return how many targets each term has in `batch`.

        Raises:
            DataError: as the loss.
        """
        return self._loss.counts(batch)

    def __call__(self, model: nn.Module, batch: DeviceBatch) -> tuple[LossTerm, ...]:
        """Return the terms at a depth drawn now.

        Raises:
            SettingsError: the model has no depths, or fewer.
        """
        encoder = _encoder_of(model)
        law = depth_probabilities(encoder.num_depths, self._law, self._first)
        drawn = torch.multinomial(torch.tensor(law, dtype=torch.float64), 1)
        with _ending_after(encoder, self._first + int(drawn)):
            first, *others = self._loss(model, batch)
        return (LossTerm(first.name, first.total + _idle(encoder), first.count), *others)

    def chance(self, labels: NDArray[Any]) -> float | None:
        """Return the mean loss of the best constant answer, which is the same at all depths."""
        if isinstance(self._loss, LabelledLoss):
            return chance_loss(labels)
        return self._loss.chance(labels) if isinstance(self._loss, KnowsChance) else None


def depth_probabilities(depths: int, law: str, first_depth: int = 1) -> list[float]:
    """Return the probability of each depth from `first_depth` to `depths`.

    Args:
        depths: L.
        law: "uniform", or "deep": proportional to the depth.
        first_depth: the smallest depth.

    Raises:
        SettingsError: no depth is left.
    """
    if first_depth > depths:
        raise SettingsError(
            f"exits.first_depth is {first_depth}, but the model has {depths} depths; give at most that"
        )
    shares = [float(d) if law == "deep" else 1.0 for d in range(first_depth, depths + 1)]
    return [share / sum(shares) for share in shares]


def _encoder_of(model: nn.Module) -> Encoder:
    for part in model.modules():
        if isinstance(part, Encoder):
            return part
    raise SettingsError(
        f"{type(model).__name__} has no depths; leave exits.random_depth out, or train a litebert model"
    )


def _idle(encoder: Encoder) -> Tensor:
    """Zero, with a gradient of zero for what only later depths use.

    Every weight then has a gradient at every step, which exchange between ranks counts on.
    """
    parts = [weight.sum() for weight in encoder.parameters() if weight.requires_grad]
    return torch.stack(parts).sum() * 0 if parts else torch.zeros(())


@contextmanager
def _ending_after(encoder: Encoder, depth: int) -> Generator[None]:
    """Let the encoder stop after a depth meanwhile."""
    before = encoder.active_depth
    encoder.set_active_depth(depth, allow_idle=True)
    try:
        yield
    finally:
        encoder.active_depth = before
