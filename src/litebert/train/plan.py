"""How many steps a run has, and which rate, depth and random seed belong to each: arithmetic."""

from __future__ import annotations

import hashlib

from litebert.train.lr_scaling import peak_learning_rate
from litebert.train.schedule import make_schedule
from litebert.train.settings import TrainSettings
from litebert.train.source import BatchSource


class StepPlan:
    """The plan of one run.

    Attributes:
        total_steps: steps of the whole run.
        warmup_steps: steps over which the learning rate rises.
        eval_steps: steps between evaluations.
        save_steps: steps between saved states.
    """

    def __init__(self, source: BatchSource, settings: TrainSettings) -> None:
        """Plan a run over the data of `source`.

        Raises:
            SettingsError: unknown schedule.
        """
        self._settings = settings
        self._schedule = make_schedule(settings)
        self.epoch = source.epoch
        """Passes over the data done after so many steps."""
        self.total_steps = settings.max_steps or source.steps_in(settings.epochs)
        self.warmup_steps = settings.warmup_fraction * self.total_steps
        self.eval_steps = settings.eval_steps or source.steps_in(1)
        self.save_steps = settings.save_steps or self.eval_steps

    def progress(self, step: int, seconds: float) -> float:
        """Return the part of the schedule that has passed, in [0, 1], by steps or by time."""
        by_steps = step / self.total_steps
        budget = self._settings.max_seconds
        return min(1.0, max(by_steps, seconds / budget) if budget else by_steps)

    def learning_rate(self, progress: float) -> float:
        """Return the rate of the next update at this progress."""
        step = progress * self.total_steps
        scale = self._schedule(step, self.total_steps, self.warmup_steps)
        return peak_learning_rate(self._settings) * scale

    def depth(self, progress: float) -> int | None:
        """Return how many depths run at this progress; None: all."""
        start = self._settings.shallow_start
        return start.depth if start is not None and progress < start.fraction else None

    def seed_of(self, step: int, rank: int = 0) -> int:
        """Return the seed of a step's dropout: it depends on run seed, step and rank alone.

        So neither evaluations, nor a repeated step, nor a resumed run changes a dropout mask.
        """
        text = f"dropout {self._settings.seed} {step}" + (f" {rank}" if rank else "")
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
