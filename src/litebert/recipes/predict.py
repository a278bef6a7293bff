"""Predictions for one text, a stream of lines, or a table, as rows that keep what they came with."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

from litebert.checkpoint.fs import write_atomic
from litebert.data.tables import read_table
from litebert.errors import DataError, SettingsError
from litebert.recipes.predictor import Predictor, Text
from litebert.tasks.base import Prediction

__all__ = ["PredictionRows", "TableJob", "predict_lines", "predict_table", "predict_text"]

CHUNK_ROWS: Final = 256
"""Rows predicted at once: small enough that a stream answers soon, large enough to fill batches."""
RESULT_COLUMNS: Final = ("prediction", "score", "scores")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TableJob:
    """A table to predict.

    Attributes:
        path: file in any format that training reads.
        text_columns: columns with the texts; those of the training when empty.
        encoding: Python codec name; found out when None.
        batch_tokens: real tokens of one forward pass.
    """

    path: Path
    text_columns: tuple[str, ...] = ()
    encoding: str | None = None
    batch_tokens: int = 2048


class PredictionRows:
    """Rows with their predictions, made while they are read."""

    def __init__(self, rows: Iterable[tuple[Row, Prediction]], columns: tuple[str, ...]) -> None:
        self._rows = rows
        self._columns = columns

    def lines(self, form: str) -> Iterator[str]:
        """Yield text lines with line ends.

        Args:
            form: `jsonl`, `csv` (header first), or `plain` (answer, tab, probability).

        Raises:
            SettingsError: another form.
        """
        if form == "plain":
            for _, prediction in self._rows:
                label = prediction.label
                shown = " | ".join(label) if isinstance(label, tuple) else label
                yield (
                    f"{shown:.6g}\n"
                    if isinstance(shown, float)
                    else f"{shown}\t{prediction.score:.4f}\n"
                )
        elif form == "jsonl":
            for row, prediction in self._rows:
                yield json.dumps(_merged(row, prediction), ensure_ascii=False, default=str) + "\n"
        elif form == "csv":
            yield from self._csv_lines()
        else:
            raise SettingsError(f"output format {form!r}; allowed: jsonl, csv, plain")

    def save(self, path: Path, form: str) -> None:
        """Write all rows to a file that appears only when it is whole."""
        write_atomic(path, "".join(self.lines(form)).encode("utf-8", errors="backslashreplace"))

    def _csv_lines(self) -> Iterator[str]:
        columns = [*self._columns, *(_free_name(name, self._columns) for name in RESULT_COLUMNS)]
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(columns)
        yield _drained(buffer)
        for row, prediction in self._rows:
            merged = _merged(row, prediction)
            writer.writerow([_cell(merged.get(column)) for column in columns])
            yield _drained(buffer)


def predict_text(predictor: Predictor, text: str, pair: str | None) -> PredictionRows:
    """Predict one text, or one pair."""
    row: Row = {"text": text} | ({} if pair is None else {"pair": pair})
    rows = ((row, p) for p in predictor.predict([text if pair is None else (text, pair)]))
    return PredictionRows(rows, tuple(row))


def predict_lines(
    predictor: Predictor, stream: IO[bytes], *, batch_tokens: int = 2048
) -> PredictionRows:
    """Predict UTF-8 lines as they arrive: plain text, `text<TAB>pair`, or JSON objects.

    The form is that of the first line. Every line gives one row, blank ones too.

    Raises:
        DataError: a line that is not UTF-8, or not JSON although the first one was.
    """
    columns = predictor_columns(predictor)
    return PredictionRows(
        _predicted(predictor, _stream_rows(stream, columns), columns, batch_tokens), columns
    )


def predict_table(predictor: Predictor, job: TableJob) -> PredictionRows:
    """Predict every row of a table, all columns kept.

    Raises:
        DataError: unreadable file.
        SettingsError: no such text column.
    """
    table = read_table(job.path, encoding=job.encoding)
    columns = job.text_columns or predictor_columns(predictor)
    if len(columns) == 1 and columns[0] not in table.columns and len(table.columns) == 1:
        columns = tuple(table.columns)
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise SettingsError(
            f"{job.path} has no column {missing[0]!r}; it has {', '.join(table.columns)}; "
            "name the text with --text-column"
        )
    rows = (row.values for row in table.rows)
    return PredictionRows(
        _predicted(predictor, rows, columns, job.batch_tokens), tuple(table.columns)
    )


def predictor_columns(predictor: Predictor) -> tuple[str, ...]:
    """Return the text columns that the model was trained on."""
    return tuple(getattr(predictor.required_task, "text_columns", ("text",)))


def _predicted(
    predictor: Predictor, rows: Iterable[Row], columns: tuple[str, ...], batch_tokens: int
) -> Iterator[tuple[Row, Prediction]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, CHUNK_ROWS)):
        texts = [_text_of(row, columns) for row in chunk]
        yield from zip(chunk, predictor.predict(texts, batch_tokens=batch_tokens), strict=True)


def _text_of(row: Row, columns: tuple[str, ...]) -> Text:
    values = [row.get(column) for column in columns]
    parts = ["" if value is None else str(value) for value in values]
    return parts[0] if len(parts) == 1 else (parts[0], parts[1])


def _stream_rows(stream: IO[bytes], columns: tuple[str, ...]) -> Iterator[Row]:
    is_json: bool | None = None
    for number, raw in enumerate(stream, start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(
                f"not UTF-8: {error.reason}; convert it, or give the file with --encoding",
                path=Path("<stdin>"),
                line=number,
            ) from error
        if is_json is None:
            is_json = line.lstrip().startswith("{")
        yield _json_row(line, number) if is_json else _plain_row(line, columns)


def _plain_row(line: str, columns: tuple[str, ...]) -> Row:
    if len(columns) == 1:
        return {columns[0]: line}
    first, _, second = line.partition("\t")
    return {columns[0]: first, columns[1]: second}


def _json_row(line: str, number: int) -> Row:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"not JSON, although the first line was: {error}", path=Path("<stdin>"), line=number
        ) from error
    if not isinstance(value, dict):
        raise DataError("expected a JSON object", path=Path("<stdin>"), line=number)
    return value


def _merged(row: Row, prediction: Prediction) -> Row:
    """The row with its results; input columns that have a result's name keep their value."""
    results = prediction.to_json()
    return dict(row) | {_free_name(name, row): results[name] for name in RESULT_COLUMNS}


def _free_name(name: str, taken: Iterable[str]) -> str:
    taken = set(taken)
    while name in taken:
        name += "_new"
    return name


def _cell(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "|".join(value)
    return (
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict | list)
        else str("" if value is None else value)
    )


def _drained(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
