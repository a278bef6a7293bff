"""`litebert evaluate`: the scores of a trained model on labelled data."""

from __future__ import annotations

from pathlib import Path

import typer

from litebert.cli.choices import (
    BadRow,
    BadRowRule,
    ChoiceColumns,
    DepthLimit,
    EncodingName,
    ExitWhen,
    LabelColumn,
    SplitName,
    TaskName,
    TextColumns,
)
from litebert.cli.output import show, show_json


def evaluate(
    model: Path = typer.Argument(metavar="MODEL", help="Model folder, run folder or export."),
    data: Path = typer.Argument(metavar="DATA", help="Labelled file or folder."),
    task: TaskName = None,
    split: SplitName = "auto",
    encoding: EncodingName = None,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    choice_column: ChoiceColumns = None,
    on_bad_row: BadRowRule = BadRow.error,
    slices: bool = typer.Option(
        False, "--slices", help="Scores by length, class, and words that two texts share."
    ),
    abstain_below: float | None = typer.Option(
        None, "--abstain-below", help="Withhold answers below this probability: what remains."
    ),
    target_accuracy: float | None = typer.Option(
        None,
        "--target-accuracy",
        help="Find the probability from which answers are right so often.",
    ),
    depth: DepthLimit = None,
    exit_when: ExitWhen = None,
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Score a model on labelled data, beside the most frequent answer."""
    from litebert.recipes.evaluate import EvaluationJob, evaluate_folder

    job = EvaluationJob(
        data=data,
        task=task,
        split=split,
        encoding=encoding,
        text_columns=tuple(text_column or ()),
        label_column=label_column,
        choice_columns=tuple(choice_column or ()),
        on_bad_row=on_bad_row.value,
        has_slices=slices,
        abstain_below=abstain_below,
        target_accuracy=target_accuracy,
        depth=depth,
        exit_when=exit_when,
    )
    report = evaluate_folder(model, job)
    if as_json:
        show_json(report.to_dict())
    else:
        show("\n".join(report.lines()))
