"""`litebert data ...`: look at a data set before training on it."""

from __future__ import annotations

from pathlib import Path

import typer

from litebert.cli.output import show, show_json

app = typer.Typer(no_args_is_help=True, help="Look at data before training on it.")


@app.callback()
def root() -> None:
    """Commands about data."""


@app.command("check")
def check(
    data: Path = typer.Argument(metavar="DATA", help="File or folder with labelled examples."),
    evaluation: Path | None = typer.Option(
        None, "--eval", help="Evaluation file, to look for leakage."
    ),
    task: str | None = typer.Option(None, "--task", help="Named source, such as glue/cola."),
    tokenizer: Path | None = typer.Option(
        None,
        "--tokenizer",
        help="Model folder whose tokenizer is used; else one is trained on the texts.",
    ),
    max_length: int = typer.Option(128, "--max-length", min=8, help="Tokens kept of an example."),
    text_column: list[str] | None = typer.Option(
        None, "--text-column", help="Column with the text."
    ),
    label_column: str | None = typer.Option(None, "--label-column", help="Column with the label."),
    encoding: str | None = typer.Option(None, "--encoding", help="Encoding of the file."),
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON."),
) -> None:
    """Report on a data set; exit code 1 if there is a problem.

    Classes, duplicates, leakage between train and eval, truncation, unreadable rows.
    """
    from litebert.recipes.data_check import run_check

    report = run_check(
        data,
        evaluation,
        task=task,
        tokenizer=tokenizer,
        max_length=max_length,
        text_columns=tuple(text_column or ()) or None,
        label_column=label_column,
        encoding=encoding,
    )
    if as_json:
        show_json(report.to_json())
    else:
        show(report.to_text())
    if not report.is_clean:
        raise typer.Exit(1)
