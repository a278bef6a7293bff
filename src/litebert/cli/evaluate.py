"""`litebert evaluate`: the scores of a trained model on labelled data."""

from __future__ import annotations

import json
from pathlib import Path

import typer


def evaluate(
    model: Path = typer.Argument(help="Model folder or run folder."),
    data: Path = typer.Argument(help="Labelled file or folder."),
    task: str | None = typer.Option(None, "--task", help="Named format, such as glue/cola."),
    split: str = typer.Option(
        "auto", "--split", help="Part of a folder: train, eval, test; auto: eval, else train."
    ),
    encoding: str | None = typer.Option(None, "--encoding", help="Encoding of the file."),
    skip_bad_rows: bool = typer.Option(
        False, "--skip-bad-rows", help="Leave unusable records out and count them."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Score a model on labelled data, beside the most frequent answer."""
    from litebert.recipes.evaluate import EvaluationJob, evaluate_folder

    job = EvaluationJob(
        data=data, task=task, split=split, encoding=encoding, skip_bad_rows=skip_bad_rows
    )
    report = evaluate_folder(model, job)
    typer.echo(
        json.dumps(report.to_dict(), indent=2, ensure_ascii=False)
        if as_json
        else "\n".join(report.lines())
    )
