"""Which examples, learning rate and random seed belong to a step: arithmetic, no memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from litebert.data.batch import EncodedExample, batch_order
from litebert.errors import DataError
from litebert.train.schedule import find_schedule
from litebert.train.settings import TrainSettings


class StepPlan:
    """The plan of one run.

    Attributes:
        steps_per_epoch: steps that visit every example once.
        total_steps: steps of the whole run.
        warmup_steps: steps over which the learning rate rises.
        eval_steps: steps between evaluations.
        save_steps: steps between saved states.
    """

    def __init__(self, data: Sequence[EncodedExample], settings: TrainSettings) -> None:
        """Plan a run over `data`.

        Raises:
            DataError: there is no data.
            SettingsError: unknown schedule.
        """
        if not data:
            raise DataError("there is nothing to train on: no examples")
        self._lengths = np.asarray([len(example) for example in data], np.int64)
        self._settings = settings
        self._schedule = find_schedule(settings.schedule)
        self._epoch: int | None = None
        self._order: list[NDArray[np.int64]] = []
        self.steps_per_epoch = math.ceil(len(data) / settings.batch_size)
        self.total_steps = settings.max_steps or max(
            1, math.ceil(settings.epochs * self.steps_per_epoch - 1e-9)
        )
        self.warmup_steps = settings.warmup_fraction * self.total_steps
        self.eval_steps = settings.eval_steps or self.steps_per_epoch
        self.save_steps = settings.save_steps or self.eval_steps

    def examples_of(self, step: int) -> NDArray[np.int64]:
        """Return the indices of the examples of the update that follows `step` finished ones."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._order = batch_order(
                self._lengths,
                batch_size=self._settings.batch_size,
                seed=self._settings.seed,
                epoch=epoch,
                bucket=self._settings.bucket,
            )
            self._epoch = epoch
        return self._order[position]

    def epoch(self, step: int) -> float:
        """Return the passes over the data done after `step` updates."""
        return step / self.steps_per_epoch

    def progress(self, step: int, seconds: float) -> float:
        """Return the part of the schedule that has passed, in [0, 1], by steps or by time."""
        by_steps = step / self.total_steps
        budget = self._settings.max_seconds
        return min(1.0, max(by_steps, seconds / budget) if budget else by_steps)

    def learning_rate(self, progress: float) -> float:
        """Return the rate of the next update at this progress."""
        step = progress * self.total_steps
        scale = self._schedule(step, self.total_steps, self.warmup_steps)
        return self._settings.learning_rate * scale

    def seed_of(self, step: int) -> int:
        """Return the seed of a step's dropout: it depends on seed and step and nothing else.

        So neither evaluations, nor a repeated step, nor a resumed run changes a dropout mask.
        """
        text = f"dropout {self._settings.seed} {step}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1
