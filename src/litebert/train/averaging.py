"""A mean of the trained weights over the steps, and how it takes their place for an evaluation."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from litebert.errors import CheckpointError, SettingsError
from litebert.train.settings import TrainSettings

__all__ = ["WeightAverage"]


class WeightAverage:
    """The mean of the weights that need a gradient; without settings, or before it begins, nothing.

    Training goes on from the weights themselves, as if there were no mean. Source: Polyak and
    Juditsky 1992 (ema: as in TensorFlow's ExponentialMovingAverage, whose decay rises with the
    number of updates); Izmailov et al. 2018 (swa).
    Differs from: SWA's own high constant or cyclic rate; the schedule is that of the run.

    Attributes:
        count: sets of weights in the mean.
    """

    def __init__(self, model: nn.Module, settings: TrainSettings) -> None:
        """Prepare for one run.

        Raises:
            SettingsError: the weights are split over the ranks.
        """
        self._settings = settings.averaging
        if self._settings is not None and settings.shard_weights:
            raise SettingsError(
                "train.averaging keeps a whole copy of the weights, train.shard_weights splits them; "
                "choose one of the two"
            )
        self._model = model
        self._means: dict[str, Tensor] = {}
        self.count, self._steps = 0, 0

    def update(self, progress: float) -> None:
        """Take in the weights after a step.

        Args:
            progress: part of the schedule that had passed before the step, in [0, 1].
        """
        settings = self._settings
        if settings is None or progress < settings.start_fraction:
            return
        self._steps += 1
        if self.count and (self._steps - 1) % settings.every_steps:
            return
        self.count += 1
        if self.count == 1:
            self._means = {n: p.detach().clone() for n, p in self._trained().items()}
            return
        share = 1 / self.count
        if settings.kind == "ema":
            share = 1 - min(settings.decay, self.count / (9 + self.count))
        with torch.no_grad():
            for name, parameter in self._trained().items():
                self._means[name].lerp_(parameter, share)

    @contextmanager
    def in_place(self) -> Generator[None]:
        """In the block the model has the mean for its weights, if there is one."""
        if not self.count:
            yield
            return
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def install(self) -> None:
        """Give the model the mean for good; the run is over."""
        if self.count:
            self._exchange()
            self._means, self.count, self._steps = {}, 0, 0

    def capture(self) -> tuple[dict[str, Tensor], dict[str, int]]:
        """Return (tensors, JSON scalars) to save."""
        return dict(self._means), {"count": self.count, "steps": self._steps}

    def restore(self, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any] | None) -> None:
        """Put back what `capture` returned; None from a state of a version without it.

        Raises:
            CheckpointError: it is of another model.
        """
        trained = self._trained()
        scalars = scalars or {"count": 0, "steps": 0}
        if scalars["count"] and (
            tensors.keys() != trained.keys()
            or any(tensors[name].shape != value.shape for name, value in trained.items())
        ):
            raise CheckpointError("the saved mean of the weights does not fit the model")
        self._means = {name: tensors[name].to(trained[name]).clone() for name in tensors}
        self.count, self._steps = scalars["count"], scalars["steps"]

    def _trained(self) -> dict[str, nn.Parameter]:
        return {n: p for n, p in self._model.named_parameters() if p.requires_grad}

    def _exchange(self) -> None:
        for name, parameter in self._trained().items():
            parameter.data, self._means[name] = self._means[name], parameter.data
