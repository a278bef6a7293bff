"""`litebert predict`: texts in, predictions out, in the order and with the columns they came with."""

from __future__ import annotations

import contextlib
import stat
import sys
from collections.abc import Generator
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import typer

from litebert.cli.choices import ChoiceColumns, DepthLimit, ExitWhen
from litebert.cli.ended import clean_end
from litebert.cli.output import say, write_lines
from litebert.errors import DataError, SettingsError

if TYPE_CHECKING:
    from litebert.recipes.predict import PredictJob
    from litebert.recipes.prediction_rows import PredictionRows
    from litebert.runtime.text_model import TextModel

FILE_ENDS: Final = (
    ".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".txt",
    ".gz", ".zst", ".xz", ".bz2",
)  # fmt: skip
"""A word that ends so is meant as a file, also when there is none."""


class OutputFormat(StrEnum):
    """How predictions are written."""

    auto = "auto"
    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    plain = "plain"


@clean_end()
def predict(
    model: Path = typer.Argument(metavar="MODEL", help="Model folder, run folder or export."),
    data: str = typer.Argument(
        "-", metavar="TEXT|FILE|-", help="A text, a table, a .txt file of lines, or - for stdin."
    ),
    pair: str | None = typer.Option(None, "--pair", help="Second text, for models of pairs."),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="Write here instead of standard output."
    ),
    output_format: OutputFormat = typer.Option(
        OutputFormat.auto,
        "--format",
        help="auto: as --out is named; else plain for one text, CSV for CSV, JSON lines.",
    ),
    text_column: list[str] | None = typer.Option(
        None, "--text-column", help="Column with the text; give it twice for pairs."
    ),
    choice_column: ChoiceColumns = None,
    encoding: str | None = typer.Option(None, "--encoding", help="Encoding of the input."),
    task: str | None = typer.Option(
        None, "--task", help="Kind of file, for models of records (squad, tagging, race ...)."
    ),
    abstain_below: float | None = typer.Option(
        None,
        "--abstain-below",
        min=0.0,
        max=1.0,
        help="Answers with a smaller probability become null.",
    ),
    depth: DepthLimit = None,
    exit_when: ExitWhen = None,
    batch_tokens: int = typer.Option(
        2048, "--batch-tokens", min=1, help="Tokens of one forward pass."
    ),
) -> None:
    """Predict a text, a table, or lines of standard input.

    Rows keep their order and all their columns; prediction, score and scores are added. Lines of
    standard input are texts, text<TAB>pair for models of pairs, or JSON objects. Models of records
    read the files that they are trained on: a file of questions, of sentences, of choices.
    """
    from litebert.recipes.abstain import refuse_numbers
    from litebert.recipes.loading import limit_depth, load
    from litebert.recipes.predict import PredictJob, predict_lines, predict_table, predict_text
    from litebert.recipes.prediction_rows import output_form
    from litebert.recipes.record_predict import is_record_task

    source = _source(data)
    _refuse_unused(source, data, pair, text_column or choice_column, encoding)
    if out is not None:
        _refuse_out(out, data if source in ("table", "lines") else None)
    wanted = output_form(out) if out is not None and output_format is OutputFormat.auto else None
    predictor = load(model)
    limit_depth(predictor, model, depth=depth, exit_when=exit_when)
    if abstain_below is not None:
        refuse_numbers(predictor.required_task)
    job = PredictJob(tuple(text_column or ()), encoding, batch_tokens, tuple(choice_column or ()))
    is_of_records = is_record_task(predictor)
    if job.choice_columns and not is_of_records:
        raise SettingsError("--choice-column belongs to tables of choices; this model takes texts")
    _refuse_unfit(source, data, task, is_of_records=is_of_records)
    with _opened("records" if is_of_records else source, data) as stream:
        if is_of_records:
            rows = _record_rows(predictor, model, source, data, pair, task, job)
        elif stream is not None:
            rows = predict_lines(predictor, stream, job, name="<stdin>" if data == "-" else data)
        elif source == "table":
            rows = predict_table(predictor, Path(data), job)
        else:
            rows = predict_text(predictor, data, pair)
        rows.abstain_below = abstain_below
        for note in rows.notes:
            say(f"note      {note}")
        form = str(output_format)
        if output_format is OutputFormat.auto:
            form = wanted or _usual_form(source, data, out)
        if out is None:
            write_lines(rows.lines(form))
        else:
            rows.save(out, form)
            say(f"wrote {out}")


def _record_rows(
    predictor: TextModel,
    folder: Path,
    source: str,
    data: str,
    pair: str | None,
    kind: str | None,
    job: PredictJob,
) -> PredictionRows:
    """Answers of a model of records to one text, or to a file of its kind."""
    from litebert.recipes.finetune.record_plan import named_columns
    from litebert.recipes.record_predict import (
        columns_of,
        kind_of,
        predict_record_text,
        predict_records,
    )

    if source == "text":
        return predict_record_text(predictor, data, pair)
    task: Any = predictor.required_task
    kind = kind_of(folder, task, kind)
    told = named_columns(job.text_columns, None, job.choice_columns)
    return predict_records(
        predictor,
        Path(data),
        kind,
        columns=columns_of(folder, kind, told),
        encoding=job.encoding,
        batch_tokens=job.batch_tokens,
    )


def _refuse_unfit(source: str, data: str, task: str | None, *, is_of_records: bool) -> None:
    """Refuse input of a kind that the model does not take."""
    if not is_of_records and source == "folder":
        raise SettingsError(f"{data} is a folder; give a file, or pipe it in if it is a text")
    if not is_of_records and task is not None:
        raise SettingsError("--task names a kind of records, but this model takes texts")
    if is_of_records and source == "stdin":
        raise SettingsError("this model reads records from a file, not standard input; name a file")


def _usual_form(source: str, data: str, out: Path | None) -> str:
    """The form of the input, where it has one."""
    from litebert.recipes.prediction_rows import form_of

    if source == "text":
        return "jsonl" if out else "plain"
    return (form_of(Path(data)) if source == "table" else None) or "jsonl"


@contextlib.contextmanager
def _opened(source: str, data: str) -> Generator[IO[bytes] | None]:
    """The stream of lines, if the input is one."""
    if source == "lines":
        with Path(data).open("rb") as stream:
            yield stream
    elif source == "stdin":
        if sys.stdin.isatty():
            say("type one text a line; end with Ctrl-D")
        yield sys.stdin.buffer
    else:
        yield None


def _source(data: str) -> str:
    """What the word means: `stdin`, `table`, `lines`, `folder` or `text`."""
    if data == "-":
        return "stdin"
    if not data:
        return "text"  # as a path it would be the working folder
    try:
        mode = Path(data).stat().st_mode
    except (OSError, ValueError) as error:  # not there, or no file name at all: a long text
        is_one_line = "\n" not in data and len(data) < 1000
        if is_one_line and data.lower().endswith(FILE_ENDS):
            raise DataError(
                "there is no such file; pipe it in if it is a text", path=Path(data)
            ) from error
        return "text"
    if stat.S_ISDIR(mode):
        return "folder"
    if not stat.S_ISREG(mode):
        return "lines"  # a named pipe or a device
    return "lines" if data.lower().endswith(".txt") else "table"


def _refuse_unused(
    source: str, data: str, pair: str | None, text_column: list[str] | None, encoding: str | None
) -> None:
    """Refuse options that would have no effect."""
    if pair is not None and source != "text":
        what = "standard input" if source == "stdin" else data
        raise SettingsError(f"--pair belongs to one TEXT, but the input is {what}")
    if source == "text" and (text_column or encoding):
        name = "--text-column or --choice-column" if text_column else "--encoding"
        raise SettingsError(f"{name} belongs to a file, but there is no file {data!r:.60}")


def _refuse_out(out: Path, source_file: str | None) -> None:
    if out.is_dir():
        raise SettingsError(f"--out {out} is a folder; name a file")
    if source_file is not None and out.exists() and out.samefile(source_file):
        raise SettingsError(f"--out {out} is the input itself; name another file")
