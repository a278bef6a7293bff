"""Everything a distillation depends on, as one frozen table."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from litebert.objectives.distill import DistillSettings
from litebert.settings import Settings
from litebert.train.exit_settings import ExitSettings
from litebert.train.settings import TrainSettings

__all__ = ["DistillCheck", "DistillData", "DistillRun", "DistillStudent", "DistillTrain"]


class DistillData(Settings):
    """Which texts the teacher is asked about."""

    path: str = ""
    """Shards of `litebert prepare`, or a file; what the command line names."""
    max_length: int = Field(default=64, ge=4, le=100_000)
    """Tokens of a text, special ones included."""
    short_fraction: float = Field(default=0.8, ge=0, le=1)
    """Share of texts with a shorter random length."""
    replaced_fraction: float = Field(default=0.0, ge=0, le=1)
    """Share of the pieces of every second text of shards that random pieces take the place of: the
    teacher answers to any text, and so every piece of the vocabulary is learnt, also rare ones."""
    replaced_by: Literal["uniform", "rank"] = "uniform"
    """Which pieces: all alike, or by their place in the vocabulary, p ~ 1 / (50 + place), single
    characters left out. Vocabularies are in order of frequency, so `rank` brings the words of the texts
    that the vocabulary was made from, where those to learn from are of another kind."""
    max_examples: int | None = Field(default=None, ge=64, le=1_000_000_000)
    """Texts that are used, drawn from all; None: all. Fewer are asked about once and seen often."""
    eval_examples: int = Field(default=512, ge=1, le=1_000_000)
    """Texts held out to compare student and teacher on."""
    cache: str | None = None
    """Folder for the teacher's outputs; None: in the run folder. Runs may share one."""


class DistillStudent(Settings):
    """What learns."""

    source: str
    """Model folder to start from, such as one of `litebert fold`, or a preset for new weights."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Values of the configuration to change, such as `num_hidden_layers` of a preset."""


class DistillTrain(TrainSettings):
    """How it is trained: as any training, with the defaults of distillation."""

    epochs: float = Field(default=3.0, gt=0, le=1_000_000)
    batch_size: int = Field(default=64, ge=1, le=1_000_000)
    learning_rate: float = Field(default=5e-4, gt=0, lt=1)
    adam_beta2: float = Field(default=0.98, ge=0, lt=1)
    warmup_fraction: float = Field(default=0.05, ge=0, lt=1)
    micro_batch_tokens: int = Field(default=16_384, ge=1, le=100_000_000)
    """Most real tokens per forward pass. Texts are compared with those of the same pass, so a step
    that is cut compares fewer."""
    load_best: bool = False
    save_steps: int | None = Field(default=None, ge=1)
    """Steps between saved states; None: 200."""
    eval_steps: int | None = Field(default=None, ge=1)
    """Steps between evaluations; None: 500."""


class DistillCheck(Settings):
    """Scored texts that are looked at during the run, never learnt from."""

    kind: Literal["stsb", "sick", "jsts", "similarity"] = "similarity"
    """How they are read."""
    path: str
    """File or folder."""
    split: Literal["train", "eval", "test"] = "eval"
    """Part of it."""
    max_records: int = Field(default=2000, ge=2, le=1_000_000)
    """Most pairs; of more, every second, third, ... counts."""


class DistillRun(Settings):
    """One distillation: teacher, student, texts, losses, loop."""

    teacher: str = ""
    """Model folder; what the command line names."""
    student: DistillStudent
    data: DistillData = DistillData()
    distill: DistillSettings
    checks: tuple[DistillCheck, ...] = ()
    exits: ExitSettings = ExitSettings()
    """`random_depth` lets the student answer at every depth; classifiers of depths are trained on labels,
    with `litebert train`."""
    train: DistillTrain = DistillTrain()

    @model_validator(mode="after")
    def _check(self) -> DistillRun:
        if self.train.patience is not None:
            raise ValueError("train.patience has no use here: leave it out")
        if self.exits.heads or self.exits.distill:
            raise ValueError(
                "exits.heads: classifiers of depths are trained on labels, with `litebert train`; here "
                "exits.random_depth teaches every depth"
            )
        return self
