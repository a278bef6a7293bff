"""Settings of a search: those of a training, and the table [tune]."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.settings import Settings

__all__ = ["SearchSettings", "TuneSettings", "training_part"]


class TuneSettings(Settings):
    """What is tried, and how often."""

    trials: int = Field(default=20, ge=1, le=100_000)
    """Trials in all; raise it later and the same folder goes on."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Seed of the choice of settings; the trainings have `train.seed`."""
    startup_trials: int = Field(default=8, ge=1, le=10_000)
    """Trials with random settings, before earlier scores guide the choice."""
    prune: bool = True
    """End a trial early when its score is below the median of the others at the same evaluation."""
    prune_after_fraction: float = Field(default=0.34, ge=0.0, lt=1.0)
    """Part of the epochs in which no trial is ended early: shared encoders begin on a plateau."""
    space: dict[str, Any] = Field(default_factory=dict)
    """Name or path of a setting -> list of values, or a table with low, high, and perhaps log and step;
    empty: ranges that fit the model, without what is told elsewhere."""


class SearchSettings(FinetuneSettings):
    """A training whose settings are searched."""

    tune: TuneSettings = TuneSettings()


def training_part(settings: SearchSettings) -> FinetuneSettings:
    """Return the settings of the training alone; what was told stays known as told."""
    return FinetuneSettings.model_validate(
        settings.model_dump(exclude={"tune"}, exclude_unset=True)
    )
