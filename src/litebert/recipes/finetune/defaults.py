"""Training settings for what was not told: they differ for pretrained and for new weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litebert.model.config import AlbertConfig
from litebert.train.settings import TrainSettings

if TYPE_CHECKING:
    from litebert.recipes.finetune.model_choice import ModelChoice

__all__ = ["begins_fitted", "default_num_seeds", "default_train_settings", "makes_vectors"]

PRETRAINED: Final[dict[str, Any]] = {"learning_rate": 3e-5, "epochs": 4.0, "batch_size": 32}
"""Within the range of the paper's Table 14; large models want less (landscape of failed runs)."""

WIDE: Final = 2048
"""From this width on the rate is 1e-5: xlarge and xxlarge collapse at more."""

NARROW: Final = 384
"""Up to this width the rate is 1e-3: small encoders hardly move at the rates of large ones. Measured
on an encoder of masked words (width 384), 141 steps on 1,500 questions of TREC, accuracy: 0.46 at 1e-4,
0.68 at 3e-4, 0.78 at 1e-3."""
VECTOR_RATE: Final = 2e-4
"""The rate of narrow encoders of mean vectors, whatever the task: 1e-3 takes them apart (STS-B by a
regression head: Pearson and Spearman 0.08). Measured on litebert-small-en, accuracy at 3e-5, 1e-4 and
2e-4: 0.872, 0.880, 0.896 on the bundled messages in three epochs; 0.914 and 0.938 at the last two on the
test set of TREC in four."""

FEW_ROWS: Final = 10_000
"""Below this many training rows the score of one seed is chance to a good part."""
FEW_ROWS_SEEDS: Final = 3

FROM_SCRATCH_UPDATES: Final = 1_200
"""Optimizer updates that small models need from random weights, whatever the size of the table."""


def default_num_seeds(told: int | None, num_rows: int) -> int:
    """Return how often to train: as told, else 3 times on few rows and once on many."""
    if told is not None:
        return told
    return FEW_ROWS_SEEDS if num_rows < FEW_ROWS else 1


def default_train_settings(
    told: TrainSettings, model: ModelChoice, num_examples: int
) -> TrainSettings:
    """Return `told` with everything that was not told filled in for this model and table."""
    known: dict[str, Any] = {"patience": 4}
    if model.folder is not None:
        known |= PRETRAINED
        if model.config.hidden_size >= WIDE:
            known["learning_rate"] = 1e-5
        elif model.config.hidden_size <= NARROW:
            known["learning_rate"] = VECTOR_RATE if makes_vectors(model.folder) else 1e-3
    else:
        batch_size = 32 if num_examples < 50_000 else 64
        epochs = FROM_SCRATCH_UPDATES * batch_size / num_examples
        known |= {
            "learning_rate": 2e-3 if model.config.hidden_size <= 128 else 1e-3,
            "epochs": float(min(12, max(3, round(epochs)))),
            "batch_size": batch_size,
            "weight_decay": 0.05,
        }
    unknown = {name: value for name, value in known.items() if name not in told.model_fields_set}
    guard = told.guard
    if "restarts" not in guard.model_fields_set:
        guard = guard.model_copy(update={"restarts": 2})
    # Validated again, so that a default that contradicts a told value is refused.
    return TrainSettings.model_validate(told.model_dump() | unknown | {"guard": guard.model_dump()})


def makes_vectors(folder: Path) -> bool:
    """Whether a model folder is of an encoder that was trained for mean vectors.

    Raises:
        CheckpointError: its configuration cannot be used.
    """
    return AlbertConfig.load(folder).litebert.pooling == "mean"


def begins_fitted(model: ModelChoice) -> bool:
    """Whether a new classifier, or regression, on this model begins as the linear head that fits its vectors.

    Only on encoders of mean vectors: those of masked words alone tell a linear head little, and learn faster
    at the higher rate (SST-2, 90 seconds of one shared processor: 0.71 so, 0.75 as before).
    """
    config = model.config
    is_fittable = config.problem_type in ("single_label_classification", "regression")
    return (
        model.folder is not None
        and is_fittable
        and config.litebert.head == "sequence"
        and config.litebert.pooler_reads != "first"
    )
