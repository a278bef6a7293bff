"""`litebert predict`: texts in, predictions out, in the order and with the columns they came with."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer


class OutputFormat(StrEnum):
    """How predictions are written."""

    auto = "auto"
    jsonl = "jsonl"
    csv = "csv"
    plain = "plain"


def predict(
    model: Path = typer.Argument(help="Model folder or run folder."),
    data: str = typer.Argument(
        "-", metavar="[TEXT|FILE|-]", help="A text, a table, or - for lines on standard input."
    ),
    pair: str | None = typer.Option(None, "--pair", help="Second text, for models of pairs."),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Write here instead of standard output."
    ),
    output_format: OutputFormat = typer.Option(
        OutputFormat.auto,
        "--format",
        help="auto: plain for one text, CSV for CSV input, else JSON lines.",
    ),
    text_column: list[str] | None = typer.Option(
        None, "--text-column", help="Column with the text; give it twice for pairs."
    ),
    encoding: str | None = typer.Option(None, "--encoding", help="Encoding of the file."),
    batch_tokens: int = typer.Option(
        2048, "--batch-tokens", min=1, help="Tokens of one forward pass."
    ),
) -> None:
    """Predict a text, a table, or standard input line by line."""
    from litebert.recipes.predict import TableJob, predict_lines, predict_table, predict_text
    from litebert.recipes.predictor import Predictor

    predictor = Predictor.load(model)
    if data == "-":
        writer = predict_lines(
            predictor, typer.get_binary_stream("stdin"), batch_tokens=batch_tokens
        )
        default = "jsonl"
    elif Path(data).is_file():
        job = TableJob(
            path=Path(data),
            text_columns=tuple(text_column or ()),
            encoding=encoding,
            batch_tokens=batch_tokens,
        )
        writer = predict_table(predictor, job)
        default = (
            "csv"
            if Path(data).name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
            else "jsonl"
        )
    else:
        writer = predict_text(predictor, data, pair)
        default = "plain"
    chosen = default if output_format is OutputFormat.auto else str(output_format)
    if out is not None:
        writer.save(out, "jsonl" if chosen == "plain" else chosen)
        typer.echo(f"wrote {out}", err=True)
        return
    for line in writer.lines(chosen):
        typer.echo(line, nl=False)
