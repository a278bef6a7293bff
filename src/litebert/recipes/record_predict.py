"""Answers and scores of a saved model on records: questions, sentences to tag, choices."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from litebert.data.readers import NamedColumns, ReadOptions
from litebert.errors import DataError, SettingsError
from litebert.recipes.abstain import Withheld, extra_values, withhold
from litebert.recipes.finetune.record_mistakes import right_answers
from litebert.recipes.finetune.record_plan import (
    named_columns,
    record_lengths,
    require_columns_taken,
)
from litebert.recipes.prediction_rows import PredictionRows
from litebert.recipes.slice_tables import slice_lines
from litebert.settings import read_toml
from litebert.tasks.records import RECORD_KINDS, RecordTask
from litebert.tasks.slices import SliceScore, record_slices

if TYPE_CHECKING:
    from litebert.data.records import RecordSource
    from litebert.data.rows import BadRowPolicy, SkippedRow
    from litebert.runtime.text_model import TextModel
    from litebert.tasks.records import Answer

__all__ = [
    "RecordReport",
    "columns_of",
    "evaluate_records",
    "is_record_task",
    "kind_of",
    "predict_record_text",
    "predict_records",
]

NO_COLUMNS: Final = NamedColumns()
_COLUMNS: Final = (("text", "s"), ("label", ""), ("choice", "s"))
RECORD_TOKENS: Final = 8192
"""Real tokens of one forward pass: records are long."""
CHUNK: Final = 512
"""Records answered together: enough to fill forward passes, little enough to keep in memory."""


@dataclass(frozen=True, slots=True)
class RecordReport:
    """Scores on labelled records, with everything needed to judge them."""

    metric: str
    records: int
    scores: dict[str, float]
    baselines: dict[str, dict[str, float]]
    faults: tuple[str, ...]
    skipped: tuple[SkippedRow, ...]
    seconds: float
    slices: tuple[SliceScore, ...] | None = None
    withheld: Withheld | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `--json`."""
        return {
            "format_version": 1,
            "metric": self.metric,
            "examples": self.records,
            "skipped": [
                {"file": str(r.path), "line": r.line, "reason": r.reason} for r in self.skipped
            ],
            "scores": self.scores,
            "baselines": self.baselines,
            "faults": list(self.faults),
            "seconds": self.seconds,
        } | extra_values(self.slices, self.withheld)

    def lines(self) -> list[str]:
        """Return the scores for a person."""
        rate = self.records / max(self.seconds, 1e-9)
        lines = [f"{self.records:,} records in {self.seconds:.1f} s ({rate:,.1f} a second)"]
        lines += [f"{len(self.skipped):,} records left out"] if self.skipped else []
        names = [self.metric, *(n for n in self.scores if n != self.metric and "/" not in n)]
        width = max(map(len, names))
        head = "".join(f" {name:>16.16}" for name in self.baselines)
        lines.append(f"{'':<{width}} {'model':>8}{head}")
        for name in names:
            others = "".join(f" {_number(b.get(name)):>16}" for b in self.baselines.values())
            lines.append(f"{name:<{width}} {_number(self.scores[name]):>8}{others}")
        lines += slice_lines(self.slices or ())
        lines += [self.withheld.line()] if self.withheld else []
        return lines + [f"warning   {fault}" for fault in self.faults]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def is_record_task(predictor: TextModel) -> bool:
    """Whether the model answers records and not texts."""
    return hasattr(predictor.task, "features")


def kind_of(folder: Path, task: RecordTask, told: str | None = None) -> str:
    """Return the kind of file that a model reads: as told, as in its training, or its task's own.

    Args:
        folder: model folder or run folder.
        task: its task.
        told: what `--task` says.
    """
    if told is not None:
        return told
    for config in (folder / "config.toml", folder.parent / "config.toml"):
        if config.is_file():
            trained = read_toml(config).get("data", {}).get("task")
            if trained in RECORD_KINDS:
                return cast("str", trained)
    return task.name


def columns_of(folder: Path, kind: str, told: NamedColumns) -> NamedColumns:
    """Return the columns to read: as told, else those that were named in training.

    Raises:
        SettingsError: some are told, and the kind has its own file format.
    """
    taker = RECORD_KINDS.get(kind)
    if told:
        require_columns_taken(taker, told)
        return told
    for config in (folder / "config.toml", folder.parent / "config.toml"):
        if taker.takes_columns and config.is_file():
            data = read_toml(config).get("data", {})
            if data.get("task") == kind:
                names = (data.get(f"{part}_column{s}") for part, s in _COLUMNS)
                return replace(named_columns(*cast("Any", names)), is_remembered=True)
    return NamedColumns()


def predict_records(
    predictor: TextModel,
    path: Path,
    kind: str,
    *,
    encoding: str | None = None,
    columns: NamedColumns = NO_COLUMNS,
    batch_tokens: int = RECORD_TOKENS,
) -> PredictionRows:
    """Answer every record of a file.

    Raises:
        SettingsError: no such kind.
        DataError: unusable data.
    """
    options = ReadOptions(encoding=encoding, columns=columns)
    source = _read(path, kind, options, labelled=False)
    task = cast("RecordTask", predictor.required_task)

    def rows() -> Iterator[tuple[dict[str, Any], Answer]]:
        records = iter(source.train.records)
        while chunk := list(islice(records, CHUNK)):
            answers = predictor.answers(chunk, batch_tokens=batch_tokens)
            yield from zip(map(task.show, chunk), answers, strict=True)

    return PredictionRows(rows(), notes=source.notes)


def predict_record_text(predictor: TextModel, text: str, pair: str | None) -> PredictionRows:
    """Answer one record made of a text (a sentence to tag, a question) and perhaps a second one.

    Raises:
        SettingsError: records of this task are more than that.
        DataError: the texts make no record.
    """
    task = cast("RecordTask", predictor.required_task)
    make = getattr(task, "from_text", None)
    if make is None:
        raise SettingsError(f"task {task.name!r} answers records of a file; name a file")
    answers = predictor.answers([make(text, pair)])
    row = {"text": text} | ({} if pair is None else {"pair": pair})
    return PredictionRows([(row, answers[0])])


def evaluate_records(
    predictor: TextModel,
    path: Path,
    kind: str,
    *,
    split: str = "auto",
    encoding: str | None = None,
    on_bad_row: BadRowPolicy = "error",
    columns: NamedColumns = NO_COLUMNS,
    has_slices: bool = False,
    abstain_below: float | None = None,
    target_accuracy: float | None = None,
) -> RecordReport:
    """Score a model on labelled records, beside simple answers where the source has a training part.

    Args:
        predictor: the model.
        path: file or folder.
        kind: how it is read.
        split: part of the source.
        encoding: codec, or None to find out.
        on_bad_row: stop at an unusable record, or leave it out.
        columns: names of columns, for tables.
        has_slices: score by length and label as well.
        abstain_below: confidence below which an answer does not count as given.
        target_accuracy: find the threshold from which on answers are right so often.

    Raises:
        SettingsError: no such kind or split.
        DataError: unusable data, or no record.
    """
    options = ReadOptions(encoding=encoding, on_bad_row=on_bad_row, columns=columns)
    source = _read(path, kind, options, labelled=True)
    parts = {"train": source.train, "eval": source.eval, "test": source.test}
    chosen = parts.get(split) if split != "auto" else source.eval or source.train
    if chosen is None:
        known = [name for name, part in parts.items() if part is not None]
        raise SettingsError(
            f"there is no split {split!r} in this source; there is: {', '.join(known)}"
        )
    records = chosen.records
    if not records:
        raise DataError("there is no usable record to score on", path=chosen.path)
    task = cast("RecordTask", predictor.required_task)
    start = time.monotonic()
    answers = predictor.answers(records, batch_tokens=RECORD_TOKENS)
    seconds = time.monotonic() - start
    withheld = None
    if abstain_below is not None or target_accuracy is not None:
        withheld = withhold(
            [answer.score for answer in answers],
            right_answers(task, records, answers),
            threshold=abstain_below,
            wanted=target_accuracy,
        )
    return RecordReport(
        metric=task.metric,
        records=len(records),
        scores=task.evaluate(records, answers),
        baselines={} if chosen is source.train else _baselines(task, source.train.records, records),
        faults=tuple(task.faults(records, answers)),
        skipped=chosen.skipped,
        seconds=seconds,
        slices=record_slices(task, records, answers, record_lengths(records))
        if has_slices
        else None,
        withheld=withheld,
    )


def _baselines(
    task: RecordTask, train: Sequence[Any], records: Sequence[Any]
) -> dict[str, dict[str, float]]:
    """Return simple answers, learnt from other records than those that are scored."""
    return {baseline.name: baseline.scores for baseline in task.baselines(train, records)}


def _read(path: Path, kind: str, options: ReadOptions, *, labelled: bool) -> RecordSource[Any]:
    if not path.exists():
        raise DataError("no such file or folder; check the path", path=path)
    return RECORD_KINDS.get(kind).read(path, options, labelled)
