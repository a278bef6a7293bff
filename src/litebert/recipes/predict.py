"""Predictions for one text, a stream of lines, or a table, as rows that keep what they came with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from litebert.data.columns import text_columns
from litebert.data.tables import read_table
from litebert.errors import DataError, SettingsError
from litebert.recipes.line_stream import BATCH_LINES, stream_rows
from litebert.recipes.prediction_rows import PredictionRows
from litebert.runtime.text_model import BATCH_TOKENS, Text, TextModel

if TYPE_CHECKING:
    from litebert.data.tables import Table
    from litebert.tasks.base import Prediction

__all__ = ["PredictJob", "predict_lines", "predict_table", "predict_text"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PredictJob:
    """How an input is read and predicted.

    Attributes:
        text_columns: columns or fields with the texts; those of the training when empty.
        encoding: codec of a text file or stream; found out when None (streams: UTF-8).
        batch_tokens: real tokens of one forward pass.
        choice_columns: columns with choices, for models of choices.
    """

    text_columns: tuple[str, ...] = ()
    encoding: str | None = None
    batch_tokens: int = BATCH_TOKENS
    choice_columns: tuple[str, ...] = ()


def predict_text(predictor: TextModel, text: str, pair: str | None = None) -> PredictionRows:
    """Predict one text, or one pair.

    Raises:
        DataError: one text for a model of pairs, or the other way round.
    """
    row: Row = {"text": text} | ({} if pair is None else {"pair": pair})
    answers = predictor.predict([text if pair is None else (text, pair)])
    return PredictionRows(zip([row], answers, strict=True), tuple(row))


def predict_lines(
    predictor: TextModel, stream: IO[bytes], job: PredictJob | None = None, *, name: str = "<stdin>"
) -> PredictionRows:
    """Predict lines as they arrive: plain text, `text<TAB>pair`, or JSON objects.

    Raises:
        SettingsError: no such encoding, or a wrong number of text columns.
        DataError: when the rows are gone through: a line that cannot be used (see `stream_rows`).
    """
    job = job or PredictJob()
    columns = _columns(predictor, job)
    rows = stream_rows(stream, columns, encoding=job.encoding, name=name)
    return PredictionRows(_predicted(predictor, rows, columns, job))


def predict_table(
    predictor: TextModel, path: Path, job: PredictJob | None = None
) -> PredictionRows:
    """Predict every row of a table, all columns kept.

    Where the table lacks the columns of the training and none are told, the text columns are
    found as in training, and a note says so.

    Raises:
        DataError: unreadable file, or no column looks like text.
        SettingsError: no such text column, or a wrong number of them.
    """
    job = job or PredictJob()
    table = read_table(path, encoding=job.encoding)
    columns, notes = _find_columns(predictor, table, job)
    values = (row.values for row in table.rows)
    batches = iter(lambda: list(islice(values, BATCH_LINES)), [])
    return PredictionRows(_predicted(predictor, batches, columns, job), tuple(table.columns), notes)


def _columns(predictor: TextModel, job: PredictJob) -> tuple[str, ...]:
    """The told text columns, or those that the model was trained on."""
    trained: tuple[str, ...] = getattr(predictor.required_task, "text_columns", ("text",))
    if job.text_columns and len(job.text_columns) != len(trained):
        takes = "one text" if len(trained) == 1 else "pairs of texts"
        raise SettingsError(
            f"{len(job.text_columns)} text columns are told, but the model takes {takes}"
        )
    return job.text_columns or trained


def _find_columns(
    predictor: TextModel, table: Table, job: PredictJob
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    columns = _columns(predictor, job)
    missing = [column for column in columns if column not in table.columns]
    if not missing:
        return columns, table.notes
    problem = (
        f"{table.path} has no column {missing[0]!r}; it has {', '.join(table.columns)}; "
        "name the text with --text-column"
    )
    if job.text_columns:
        raise SettingsError(problem)
    try:
        found, reason = text_columns(table)
    except DataError as error:
        raise SettingsError(problem) from error
    if len(found) != len(columns):
        raise SettingsError(problem)
    return found, (*table.notes, f"no column {missing[0]!r}; {reason}")


def _predicted(
    predictor: TextModel, batches: Iterable[list[Row]], columns: tuple[str, ...], job: PredictJob
) -> Iterator[tuple[Row, Prediction]]:
    for batch in batches:
        texts = [_text_of(row, columns) for row in batch]
        yield from zip(batch, predictor.predict(texts, batch_tokens=job.batch_tokens), strict=True)


def _text_of(row: Row, columns: tuple[str, ...]) -> Text:
    values = [row.get(column) for column in columns]
    parts = ["" if value is None else str(value) for value in values]
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])
