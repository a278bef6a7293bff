"""All facts about one training run: the only input of plots, report and model card."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from litebert.errors import CheckpointError
from litebert.settings import Settings
from litebert.tasks.abstention import AbstentionPoint
from litebert.tasks.calibration import ReliabilityBin
from litebert.tasks.evaluation import Mistake
from litebert.tasks.metrics import ClassScore
from litebert.tasks.slices import SliceScore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "BaselineScore",
    "Curve",
    "DataFile",
    "LabelCount",
    "ModelFacts",
    "RunSummary",
    "SeedScore",
]

FORMAT_VERSION: Final = 1


class _Facts(Settings):
    # JSON has no NaN and no infinity, so facts have none either.
    model_config = ConfigDict(allow_inf_nan=False)


class DataFile(_Facts):
    """One source of examples."""

    role: str
    """"train" or "eval"."""
    name: str
    """File name as the user gave it."""
    sha256: str
    """Hex digest of the file on disk; empty for an evaluation split cut from the training file."""
    examples: int = Field(ge=0)
    skipped: int = Field(default=0, ge=0)
    """Bad rows that were left out and counted."""
    note: str = ""
    """Format, encoding, or "10 % of train.csv, stratified, seed 1"."""


class LabelCount(_Facts):
    """Examples of one class."""

    label: str
    train: int = Field(ge=0)
    evaluation: int = Field(ge=0)


class BaselineScore(_Facts):
    """A simple model on the same split; see `litebert.tasks.baselines`."""

    name: str
    """"majority" or "tfidf"."""
    method: str
    scores: dict[str, float]
    seconds: float = Field(ge=0)


class SeedScore(_Facts):
    """Main result of one of several runs that differ only in the seed."""

    seed: int
    score: float
    is_chosen: bool = False
    """Whether this run's model was kept."""


class Curve(_Facts):
    """A number over the optimizer steps."""

    steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, points: Iterable[tuple[int, float]]) -> Self:
        """Build a curve from (step, value) pairs; a value that is not finite is left out."""
        kept = [(step, value) for step, value in points if math.isfinite(value)]
        return cls(steps=tuple(s for s, _ in kept), values=tuple(v for _, v in kept))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.steps) != len(self.values):
            raise ValueError(f"{len(self.steps)} steps for {len(self.values)} values")
        return self


class ModelFacts(_Facts):
    """What was trained."""

    name: str
    """Preset, or the folder that was fine-tuned."""
    parameters: int = Field(ge=0)
    """Unique stored numbers; a shared matrix counts once."""
    unshared_parameters: int = Field(default=0, ge=0)
    """What the same depths would store without sharing; 0 when not known."""
    size_bytes: int = Field(default=0, ge=0)
    """Size of the weights file."""
    facts: dict[str, str] = Field(default_factory=dict[str, str])
    """Further lines of the table: layers, hidden size, sharing plan, vocabulary, precision."""
    is_pretrained: bool = False
    """Whether it began with weights that were learnt before."""


class RunSummary(_Facts):
    """One finished run. Everything in it is data: no text of it is trusted as HTML or Markdown."""

    format_version: int = FORMAT_VERSION
    name: str
    """Short name of the run, for titles; the run folder's name."""
    created: str
    """ISO 8601 date or time of the end of the run."""
    litebert_version: str
    command: str
    """The exact command line."""
    predict_command: str
    """A command that uses the saved model."""
    resume_command: str = ""
    """A command that goes on with the run; empty when there is nothing to go on with."""
    seed: int
    kind: str
    """binary, multiclass, multilabel, regression, or the name of a task over records."""
    head: str = "sequence"
    """Word for the model head."""
    metric: str
    """Main score, a key of `scores`."""
    labels: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ("text",)
    label_column: str | None = "label"
    inferred: tuple[str, ...] = ()
    """What was concluded from the data, each with its reason, as sentences."""
    settings_toml: str = ""
    """The resolved settings."""
    model: ModelFacts
    data: tuple[DataFile, ...] = ()
    label_counts: tuple[LabelCount, ...] = ()
    """In the order of `labels`; empty for regression."""
    scores: dict[str, float]
    """All scores of the kept model on the evaluation examples."""
    evaluated: int = Field(ge=0)
    """Number of evaluation examples."""
    baselines: tuple[BaselineScore, ...] = ()
    seeds: tuple[SeedScore, ...] = ()
    class_table: tuple[ClassScore, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    """Rows are true classes, columns answers."""
    points: tuple[tuple[float, float], ...] = ()
    """Regression: (truth, answer)."""
    temperature: float = Field(default=1.0, gt=0)
    ece_before: float | None = None
    """Calibration error at temperature 1, in [0, 1]."""
    reliability: tuple[ReliabilityBin, ...] = ()
    """At the fitted temperature."""
    mistakes: tuple[Mistake, ...] = ()
    """Wrong answers with the largest loss, worst first."""
    slices: tuple[SliceScore, ...] = ()
    """Scores of parts of the evaluation examples."""
    abstention: tuple[AbstentionPoint, ...] = ()
    """Thresholds on confidence, and what remains above them."""
    lengths: dict[int, int] = Field(default_factory=dict[int, int])
    """Number of tokens before cutting -> number of training examples."""
    max_length: int = Field(default=128, ge=1)
    loss: Curve = Curve()
    """Training loss per logged step, in the loss's own units."""
    learning_rate: Curve = Curve()
    eval_scores: dict[str, Curve] = Field(default_factory=dict[str, Curve])
    """Score name -> values at the evaluations; the main metric and the evaluation loss."""
    best_step: int | None = None
    """Step of the kept model."""
    steps: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0)
    """Wall-clock time of training."""
    tokens_per_second: float = Field(default=0.0, ge=0)
    """Real tokens, padding not counted."""
    warnings: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    """What the model must not be used for, or was not tested on, as sentences."""
    license: str = "other"
    """License word of the model card; "other" leaves the decision to the owner of the data."""
    language: str = ""
    """ISO 639-1 code for the model card; empty when not known."""
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    """Versions and machine facts."""

    def baseline(self, name: str) -> BaselineScore | None:
        """Return the baseline of that name, if it was computed."""
        return next((item for item in self.baselines if item.name == name), None)

    def to_json(self) -> str:
        """Return the summary as JSON; `from_json` gives an equal object."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, *, path: Path | None = None) -> Self:
        """Read what `to_json` wrote.

        Raises:
            CheckpointError: not JSON, unknown or missing key, wrong type.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise CheckpointError(
                f"not a run summary of this version: {where}: {first['msg']}", path=path
            ) from error
