"""`litebert exits`: score and speed at every depth and with every rule; the fastest good one is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from litebert.cli.choices import (
    BadRow,
    BadRowRule,
    EncodingName,
    LabelColumn,
    SplitName,
    TaskName,
    TextColumns,
)
from litebert.cli.output import say, show, show_json

if TYPE_CHECKING:
    from litebert.tasks.exit_rules import Criterion


def exits(
    model: Path = typer.Argument(metavar="MODEL", help="Model folder or run folder."),
    data: Path = typer.Argument(metavar="DATA", help="Labelled file or folder to choose on."),
    max_drop: float = typer.Option(
        0.005, "--max-drop", min=0.0, help="How much worse the score may be: 0.005 is half a point."
    ),
    criterion: list[str] | None = typer.Option(
        None, "--criterion", help="patience, confidence or entropy; repeatable; default all."
    ),
    task: TaskName = None,
    split: SplitName = "auto",
    encoding: EncodingName = None,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    on_bad_row: BadRowRule = BadRow.error,
    timed: int = typer.Option(256, "--timed", min=1, help="Texts that are timed."),
    rounds: int = typer.Option(3, "--rounds", min=1, help="Timed runs; the fastest counts."),
    threads: int | None = typer.Option(None, "--threads", min=1, help="CPU threads."),
    batch_tokens: int = typer.Option(
        2048, "--batch-tokens", min=1, help="Tokens that enter the first depth together."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show what is found, write nothing."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Find out how few depths each text needs, and write the choice into the model folder.

    exits.json keeps all settings and the chosen one, which `--exit auto` of predict and evaluate
    uses; README.md gets the table, plots/exits.svg the curve. Train with
    `--set exits.heads=true` for answers of shallow depths that are worth taking.
    """
    from litebert.recipes.evaluate import EvaluationJob
    from litebert.recipes.exits.report import result_lines, write_result
    from litebert.recipes.exits.run import ExitJob, find_exits
    from litebert.tasks.exit_rules import CRITERIA

    job = ExitJob(
        evaluation=EvaluationJob(
            data=data,
            task=task,
            split=split,
            encoding=encoding,
            text_columns=tuple(text_column or ()),
            label_column=label_column,
            on_bad_row=on_bad_row.value,
        ),
        max_drop=max_drop,
        criteria=cast("tuple[Criterion, ...]", tuple(criterion)) if criterion else CRITERIA,
        timed=timed,
        rounds=rounds,
        threads=threads,
        batch_tokens=batch_tokens,
    )
    result = find_exits(model, job, on_part=say)
    if as_json:
        show_json(result.curve.to_dict())
    else:
        show("\n".join(result_lines(result)))
    if not dry_run:
        say(f"wrote {', '.join(write_result(result))} in {result.folder}")
