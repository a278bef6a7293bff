"""Everything a pretraining run depends on, as one frozen table."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from litebert.objectives.compose import ObjectiveSettings
from litebert.settings import Settings
from litebert.train.settings import TrainSettings

__all__ = ["PretrainData", "PretrainModel", "PretrainSettings", "PretrainTrain"]


class PretrainData(Settings):
    """Which shards are trained on, and how examples are cut from them."""

    shards: str
    """Folder that `litebert prepare` wrote."""
    eval_shards: str | None = None
    """Shards to score on; None: `eval` inside `shards` if it is there, else held-out chunks."""
    eval_examples: int = Field(default=512, ge=1, le=1_000_000)
    """Most examples of one evaluation, the same each time."""
    eval_fraction: float = Field(default=0.01, gt=0, le=0.5)
    """Share of chunks that is held out where there are no shards to score on."""
    max_length: int = Field(default=128, ge=16, le=100_000)
    """Tokens of an example, special tokens included."""
    short_fraction: float = Field(default=0.1, ge=0, le=1)
    """Share of examples with a shorter random length, as in the official data."""
    verify: bool = False
    """Compare the sha256 of every shard before training; sizes are compared in any case."""


class PretrainModel(Settings):
    """What is trained."""

    source: str = "small"
    """Preset, for new weights, or a model folder to go on from."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Values of the model configuration to change, such as `num_hidden_layers`."""
    start: Literal["official", "word_vectors"] = "official"
    """Where new weights begin: truncated normal, as published; or pieces of like use with like
    vectors (co-occurrence in the shards), attention that begins as a mean of the words, and one
    attention head that begins by finding equal tokens; for runs too short to find that out."""
    train: Literal["all", "head"] = "all"
    """"head": the encoder of `source`, a model folder, stays as it is and gets a head that predicts;
    a new head starts from how often each piece occurs in the shards."""


class PretrainTrain(TrainSettings):
    """How it is trained: as any training, with the defaults of pretraining."""

    epochs: float = Field(default=10.0, gt=0, le=1_000_000)
    batch_size: int = Field(default=256, ge=1, le=1_000_000)
    learning_rate: float = Field(default=1e-3, gt=0, lt=1)
    warmup_fraction: float = Field(default=0.05, ge=0, lt=1)
    load_best: bool = False
    save_steps: int | None = Field(default=None, ge=1)
    """Steps between saved states; None: about every five minutes, by the measured speed."""
    eval_steps: int | None = Field(default=None, ge=1)
    """Steps between evaluations; None: 20 in the whole run."""


class PretrainSettings(Settings):
    """One pretraining run: data, model, objectives, loop."""

    data: PretrainData
    model: PretrainModel = PretrainModel()
    objectives: ObjectiveSettings = ObjectiveSettings()
    train: PretrainTrain = PretrainTrain()

    @model_validator(mode="after")
    def _check(self) -> PretrainSettings:
        if self.train.batch_ramp is not None and self.train.max_steps is None:
            raise ValueError("train.batch_ramp needs train.max_steps: its length is a part of it")
        if self.train.patience is not None:
            raise ValueError(
                "train.patience has no use in pretraining: the loss falls most at the end of the "
                "schedule; leave it out"
            )
        return self
