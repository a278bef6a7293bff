"""`litebert quantize`: weights as integers, with proof of what that costs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from litebert.cli.output import show, show_json


class Embeddings(StrEnum):
    """Integers of the token table."""

    int8 = "int8"
    int4 = "int4"


class Activations(StrEnum):
    """How inputs of projections are rounded."""

    none = "none"
    dynamic = "dynamic"
    static = "static"


class Weights(StrEnum):
    """Integers of the projections."""

    pairs = "pairs"
    int7 = "int7"
    int8 = "int8"


def quantize(
    folder: Path = typer.Argument(metavar="MODEL", help="Model folder or run folder."),
    out: Path = typer.Option(..., "--out", "-o", help="New folder for the result."),
    data: Path | None = typer.Option(
        None, "--data", help="Labelled data: calibrates, and scores before and after."
    ),
    task: str | None = typer.Option(None, "--task", help="How --data is read, such as glue/sst2."),
    split: str = typer.Option(
        "auto", "--split", help="Part of --data: train, eval, test; auto: eval, else train."
    ),
    weights: Weights = typer.Option(
        Weights.pairs, "--weights", help="pairs: 8 bits that no CPU overflows; int7; int8."
    ),
    embeddings: Embeddings = typer.Option(
        Embeddings.int8, "--embeddings", help="Token table: int8, or int4 in groups."
    ),
    group: int = typer.Option(32, "--group", min=1, help="Columns that share an int4 scale."),
    activations: Activations = typer.Option(
        Activations.dynamic, "--activations", help="Range of inputs: as it comes, or of each depth."
    ),
    centers: bool = typer.Option(
        True, "--centers/--no-centers", help="Take the mean off inputs before they are rounded."
    ),
    qat: Path | None = typer.Option(
        None,
        "--qat",
        help="Labelled data to train on with rounding (the model has to have a task).",
    ),
    epochs: float = typer.Option(2.0, "--epochs", help="Epochs of --qat."),
    learning_rate: float = typer.Option(3e-4, "--learning-rate", help="Rate of --qat."),
    max_drop: float | None = typer.Option(
        None, "--max-drop", help="Refuse a result that scores so much worse (exit code 1)."
    ),
    threads: int | None = typer.Option(None, "--threads", min=1, help="CPU threads."),
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON."),
) -> None:
    """Store and multiply weights as integers: a quarter of the size, each shared one once.

    The result is a model folder (evaluate, predict, export take it) with a report: size, speed,
    score and the growth of the error by depth.
    """
    from litebert.model.quantization import Quantization
    from litebert.recipes.compress_heal import HealOptions
    from litebert.recipes.compress_measure import MeasureOptions
    from litebert.recipes.evaluate import EvaluationJob
    from litebert.recipes.quantize import QuantizeJob, quantize_folder

    evaluation = None if data is None else EvaluationJob(data=data, task=task, split=split)
    job = QuantizeJob(
        Quantization(
            weights=weights.value,
            embeddings=embeddings.value,
            embedding_group=group,
            activations=activations.value,
            centers=centers,
        ),
        MeasureOptions(evaluation, threads=threads, max_drop=max_drop),
        None
        if qat is None
        else HealOptions(qat, data, task, epochs=epochs, learning_rate=learning_rate),
    )
    report = quantize_folder(folder, out, job)
    if as_json:
        show_json(report.to_dict())
    else:
        show("\n".join(report.lines()))
