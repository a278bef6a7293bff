"""Everything a fine-tuning run depends on, as one frozen table."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from litebert.recipes.finetune.adapt_settings import AdaptSettings
from litebert.settings import Settings
from litebert.train.exit_settings import ExitSettings
from litebert.train.loss_settings import LossSettings
from litebert.train.settings import TrainSettings

__all__ = ["DataSettings", "FinetuneSettings", "ModelSettings"]


class DataSettings(Settings):
    """Where the examples come from and how they are read; None means: find out."""

    train: str
    """File or folder with labelled examples."""
    eval: str | None = None
    """File with labelled examples to score on; a part of `train` is held out when None."""
    task: str | None = None
    """Named source such as `glue/cola` or `fasttext`, for files that need to be told."""
    format: str | None = None
    """csv, tsv, jsonl, json or parquet."""
    encoding: str | None = None
    """Python codec name of a text file."""
    text_columns: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=2)
    """One text column, or two for pairs; question and passage of a table of choices."""
    label_column: str | None = None
    """Column of the labels, of the answers to choices, or of the scores of pairs."""
    choice_columns: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=26)
    """Of a table of choices: one column of lists, or a column for each choice."""
    kind: Literal["binary", "multiclass", "multilabel", "regression"] | None = None
    metric: str | None = None
    """Main score; decides early stopping and which step is best."""
    on_bad_row: Literal["error", "skip"] = "error"
    """Stop at an unusable record, or leave it out and count it."""
    eval_fraction: float = Field(default=0.15, gt=0.0, lt=1.0)
    """Share held out for scoring when there is no eval file."""
    split_seed: int = Field(default=0, ge=0)
    """Seed of the held-out split; the same for all training seeds."""
    max_length: int | None = Field(default=None, ge=8, le=100_000)
    """Tokens kept of an example; None: covers 99.5 % of the training examples, at most 256."""
    long_texts: Literal["truncate", "windows"] = "truncate"
    """Longer texts: cut them, or read them in windows of `max_length` tokens that overlap and answer by
    the mean of the windows' logits. Evaluation is by text in both cases."""
    stride: int | None = Field(default=None, ge=1)
    """Pieces by which each window starts after the one before; None: half of those that fit."""
    max_examples: int | None = Field(default=None, ge=2)
    """Train on a seeded sample of this many examples; None: all."""


class ModelSettings(Settings):
    """Which model is trained."""

    source: str = "auto"
    """Model folder, name of an encoder or preset, `scratch`: new weights in a shape that fits the amount
    of data, or `auto`: litebert-small-en where it is and the texts are English, else as `scratch`."""
    vocab_size: int = Field(default=8_000, ge=64, le=1_000_000)
    """Pieces of the vocabulary that is trained on the training texts (from scratch only)."""
    lower_case: bool | None = None
    """Lower-case the text (from scratch only); None: yes, unless the script has no case."""
    keep_accents: bool | None = None
    """Keep accents and vowel signs (from scratch only); None: kept where the training texts have them."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Values of the model configuration to change, such as `hidden_dropout_prob`."""


class FinetuneSettings(Settings):
    """One fine-tuning run: data, model, loop."""

    recipe: str | None = None
    """Published settings such as `paper/rte`, taken for everything that is not told."""
    data: DataSettings
    task: dict[str, Any] = Field(default_factory=dict)
    """Options of a task over records, such as `stride` or `max_length`; see the task."""
    model: ModelSettings = ModelSettings()
    adapt: AdaptSettings = AdaptSettings()
    loss: LossSettings = LossSettings()
    exits: ExitSettings = ExitSettings()
    train: TrainSettings = TrainSettings()
    few_shot: bool | None = None
    """Learn from pairs of examples, then a linear head on the vectors. None: where a pretrained encoder
    meets at most 64 examples of a class, and neither rate, batch size nor length of training is told."""
    num_seeds: int | None = Field(default=None, ge=1, le=100)
    """Runs with seeds train.seed, train.seed + 1, ...; the median and spread are reported. None: 3 for
    fewer than 10,000 training rows, where one seed says little, else 1."""
    has_baselines: bool = True
    """Score the majority answer and TF-IDF with logistic regression on the same split."""
