"""`litebert train`: a labelled file in, a trained, scored and saved model out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from litebert.cli.choices import (
    ChoiceColumns,
    DryRun,
    EncodingName,
    EvalFile,
    KindOfLabel,
    LabelColumn,
    LongTexts,
    MaxLength,
    MetricName,
    ModelSource,
    NoBaselines,
    OnBadRow,
    Stride,
    TaskName,
    TextColumns,
)


def train(
    data: Path | None = typer.Argument(
        None, metavar="DATA", help="Labelled file or folder. Not needed with --config or --resume."
    ),
    evaluation: EvalFile = None,
    out: Path | None = typer.Option(None, "--out", "-o", help="Run folder; default runs/NAME-N."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask before training."),
    dry_run: DryRun = False,
    resume: Path | None = typer.Option(None, "--resume", help="Continue the run in this folder."),
    config: Path | None = typer.Option(None, "--config", "-c", help="Settings file (TOML)."),
    task: TaskName = None,
    recipe: str | None = typer.Option(
        None, "--recipe", help="Published settings for what is not told, such as paper/rte."
    ),
    model: ModelSource = None,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    choice_column: ChoiceColumns = None,
    kind: KindOfLabel = None,
    metric: MetricName = None,
    encoding: EncodingName = None,
    on_bad_row: OnBadRow = None,
    epochs: float | None = typer.Option(None, "--epochs", help="Passes over the data."),
    learning_rate: float | None = typer.Option(None, "--lr", help="Peak learning rate."),
    batch_size: int | None = typer.Option(None, "--batch-size", help="Examples per step."),
    max_length: MaxLength = None,
    long_texts: LongTexts = None,
    stride: Stride = None,
    max_seconds: float | None = typer.Option(
        None, "--max-seconds", help="Time budget of each seed."
    ),
    patience: int | None = typer.Option(
        None, "--patience", min=1, help="Stop after so many evaluations without a better score."
    ),
    threads: int | None = typer.Option(
        None, "--threads", min=1, help="CPU threads; one is often faster on a busy machine."
    ),
    vocab_size: int | None = typer.Option(
        None, "--vocab-size", help="Pieces of the vocabulary, from scratch."
    ),
    seeds: int | None = typer.Option(
        None, "--seeds", min=1, help="Train this many times; 3 below 10,000 rows, else 1."
    ),
    seed: int | None = typer.Option(None, "--seed", min=0, help="First seed."),
    no_baselines: NoBaselines = False,
    overrides: list[str] | None = typer.Option(
        None, "--set", help="Any setting: section.key=value."
    ),
) -> None:
    """Train on a labelled table, and say how good the result is.

    Columns, kind of task, metric and split are found out and shown before training.
    """
    from litebert.cli.training import TrainingRequest, run_training
    from litebert.errors import SettingsError

    told: dict[str, dict[str, Any]] = {
        "data": {
            "train": data and str(data),
            "eval": evaluation and str(evaluation),
            "task": task,
            "encoding": encoding,
            "text_columns": text_column or None,
            "label_column": label_column,
            "choice_columns": choice_column or None,
            "kind": kind and str(kind),
            "metric": metric,
            "on_bad_row": on_bad_row and str(on_bad_row),
            "max_length": max_length,
            "long_texts": long_texts and str(long_texts),
            "stride": stride,
        },
        "model": {"source": model, "vocab_size": vocab_size},
        "train": {
            "epochs": epochs,
            "learning_rate": learning_rate,
            "batch_size": batch_size,
            "max_seconds": max_seconds,
            "seed": seed,
            "patience": patience,
            "threads": threads,
        },
        "": {
            "recipe": recipe,
            "num_seeds": seeds,
            "has_baselines": False if no_baselines else None,
        },
    }
    if data is None and config is None and resume is None:
        raise SettingsError("nothing to train on: give DATA, --config FILE or --resume FOLDER")
    run_training(
        TrainingRequest(
            told=told,
            overrides=tuple(overrides or ()),
            config=config,
            out=out,
            resume=resume,
            ask=not yes,
            dry_run=dry_run,
        )
    )
