"""Rows with their predictions as text: JSON lines, CSV, TSV, or plain answers."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from litebert.checkpoint.fs import write_output
from litebert.checkpoint.leftovers import remove_leftovers
from litebert.errors import DataError, SettingsError
from litebert.tasks.base import Prediction
from litebert.tasks.records import Answer

__all__ = ["FORMS", "PredictionRows", "form_of", "output_form"]

FORMS: Final = ("jsonl", "csv", "tsv", "plain")
RESULT_COLUMNS: Final = ("prediction", "score", "scores")
DIGITS: Final = 6
"""Significant digits of a result: the next one depends on which texts share a batch."""
_DELIMITERS: Final = {"csv": ",", "tsv": "\t"}
_ENDS: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "plain",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
_TABLES: Final = (".parquet", ".arrow", ".feather", ".json", ".xlsx", ".xls", ".ods", ".db")
_PACKED: Final = (".gz", ".zst", ".xz", ".bz2", ".zip")
_FOREIGN: Final = frozenset((*_TABLES, *_PACKED, ".npy", ".npz", ".safetensors", ".html", ".pdf"))
"""Ends that other programs would read as something else than lines."""
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})

Row = dict[str, Any]
Result = Prediction | Answer


def form_of(path: Path) -> str | None:
    """Return the form that a file name asks for, or None."""
    return _ENDS.get(path.suffix.lower())


def output_form(path: Path) -> str | None:
    """Return the form that the name of an output asks for; None where it says nothing.

    Raises:
        SettingsError: the name promises a form that predictions are not written in.
    """
    if path.suffix.lower() in _FOREIGN:
        raise SettingsError(
            f"--out {path} ends in {path.suffix!r}; allowed: {', '.join(_ENDS)}, or say --format"
        )
    return form_of(path)


class PredictionRows:
    """Rows with their predictions, made while they are read; they can be gone through once."""

    def __init__(
        self,
        rows: Iterable[tuple[Row, Result]],
        columns: tuple[str, ...] | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Take the rows.

        Args:
            rows: input row with its prediction.
            columns: columns of the input, in order; None: those of the first row.
            notes: how the input was read, in words.
        """
        self._rows = rows
        self._columns = columns
        self.notes = notes
        self.abstain_below: float | None = None
        """Answers with a smaller probability become null; None: all are given."""

    def lines(self, form: str) -> Iterator[str]:
        """Yield text lines with line ends.

        Args:
            form: `jsonl`, `csv` or `tsv` (header first), or `plain` (answer, tab, probability).

        Raises:
            SettingsError: another form.
            DataError: a row has a column that the header has not.
        """
        if form == "plain":
            return (_plain_line(prediction, self.abstain_below) for _, prediction in self._rows)
        if form == "jsonl":
            return (_json_line(row, found, self.abstain_below) for row, found in self._rows)
        if form in _DELIMITERS:
            return self._delimited_lines(_DELIMITERS[form])
        raise SettingsError(f"output format {form!r}; allowed: {', '.join(FORMS)}")

    def save(self, path: Path, form: str) -> None:
        """Write all rows to a file that appears only when it is whole.

        Raises:
            StorageError: the file cannot be written.
        """
        lines = self.lines(form)
        remove_leftovers(path)
        write_output(path, (line.encode("utf-8", errors="backslashreplace") for line in lines))

    def _delimited_lines(self, delimiter: str) -> Iterator[str]:
        rows = iter(self._rows)
        columns, first = self._columns, next(rows, None)
        if columns is None:
            if first is None:
                return
            columns = tuple(first[0])
        names = _result_names(columns, RESULT_COLUMNS if first is None else _results(first[1]))
        rows = rows if first is None else chain([first], rows)
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
        writer.writerow([*columns, *names])
        yield _drained(buffer)
        for number, (row, prediction) in enumerate(rows, start=1):
            new = [column for column in row if column not in columns]
            if new:
                raise DataError(
                    f"row {number} has {new[0]!r}, which the header has not; "
                    "write JSON lines: --format jsonl"
                )
            cells = [row.get(column) for column in columns]
            results = _results(prediction, self.abstain_below)
            writer.writerow([_cell(value) for value in (*cells, *results.values())])
            yield _drained(buffer)


def _json_line(row: Row, result: Result, abstain_below: float | None) -> str:
    values = _results(result, abstain_below)
    if isinstance(result, Answer):  # its details stand beside the answer
        values = values | cast("Row", values.pop("details"))
    results = dict(zip(_result_names(row, values), values.values(), strict=True))
    return json.dumps(_plain_value(row | results), ensure_ascii=False, allow_nan=False) + "\n"


def _plain_line(result: Result, abstain_below: float | None) -> str:
    label = result.value if isinstance(result, Answer) else result.label
    if _is_withheld(result, abstain_below):
        return f"\t{result.score:.4f}\n"
    if isinstance(label, float | int):
        return f"{label:.6g}\n"
    if isinstance(label, tuple):
        label = " | ".join(label)
    shown = label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)
    return f"{shown.translate(_ESCAPES)}\t{result.score:.4f}\n"


def _is_withheld(result: Result, abstain_below: float | None) -> bool:
    return abstain_below is not None and not result.score >= abstain_below


def _results(result: Result, abstain_below: float | None = None) -> dict[str, Any]:
    """The result columns, numbers without the noise of float32."""
    if isinstance(result, Answer):
        values = {"prediction": result.value, "score": result.score, "details": result.details}
    else:
        values = result.to_json()
    if _is_withheld(result, abstain_below):
        values["prediction"] = None
    return {name: _rounded(value) for name, value in values.items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in cast("Row", value).items()}
    if isinstance(value, list):
        return [_rounded(item) for item in cast("list[Any]", value)]
    return value


def _result_names(taken: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Names of the results; input columns of the same name keep theirs."""
    used = set(taken)
    names: list[str] = []
    for name in wanted:
        while name in used:
            name += "_new"
        names.append(name)
        used.add(name)
    return names


def _plain_value(value: Any) -> Any:
    """A value of a table as JSON has it: no NaN, and dates and the like as text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        pairs = cast(Mapping[Any, Any], value).items()
        return {str(key): _plain_value(item) for key, item in pairs}
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in cast(list[Any], value)]
    return str(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        items = cast(list[Any], value)
        if all(isinstance(item, str) for item in items):
            return "|".join(items)
    if isinstance(value, bool | Mapping | list | tuple):
        return json.dumps(_plain_value(value), ensure_ascii=False)
    return str(value)


def _drained(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
