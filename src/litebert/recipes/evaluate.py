"""Scores of a saved model on labelled data."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from litebert.data.examples import make_examples
from litebert.data.rows import BadRowPolicy, SkippedRow
from litebert.data.sources import load_source
from litebert.errors import DataError, SettingsError
from litebert.recipes.abstain import Withheld, extra_values, refuse_numbers, withhold
from litebert.recipes.finetune.record_plan import named_columns
from litebert.recipes.loading import limit_depth, load
from litebert.recipes.record_predict import RecordReport, columns_of, evaluate_records, kind_of
from litebert.recipes.slice_tables import slice_lines
from litebert.tasks.baselines import majority_baseline
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.evaluation import Evaluation, confidence_of, evaluate_answers

if TYPE_CHECKING:
    from litebert.data.examples import Example
    from litebert.data.readers import Source
    from litebert.data.schema import Schema
    from litebert.data.tables import Table
    from litebert.tasks.records import RecordTask

__all__ = ["EvaluationJob", "EvaluationReport", "evaluate_folder", "labelled_examples"]


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """What to score on.

    Attributes:
        data: labelled file or folder.
        task: named reader, or None.
        split: train, eval, test, or auto (eval where there is one, else train).
        encoding: Python codec name, or None to find out.
        text_columns: columns with the texts; those of the training when empty.
        label_column: column with the label; that of the training when None.
        choice_columns: columns with the choices, for tables of choices.
        on_bad_row: stop at an unusable record, or leave it out and count it.
        has_slices: show scores by length, class and shared words.
        abstain_below: confidence below which an answer does not count as given.
        target_accuracy: find the threshold from which on answers are right so often.
        depth: depths at most; None: all.
        exit_when: when a text leaves before them, as `set_exit`; None: never.
    """

    data: Path
    task: str | None = None
    split: str = "auto"
    encoding: str | None = None
    text_columns: tuple[str, ...] = ()
    label_column: str | None = None
    choice_columns: tuple[str, ...] = ()
    on_bad_row: BadRowPolicy = "error"
    has_slices: bool = False
    abstain_below: float | None = None
    target_accuracy: float | None = None
    depth: int | None = None
    exit_when: str | None = None

    @property
    def is_abstaining(self) -> bool:
        """Whether less certain answers are withheld."""
        return self.abstain_below is not None or self.target_accuracy is not None


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Scores with everything needed to judge them."""

    metric: str
    examples: int
    evaluation: Evaluation
    majority: dict[str, float]
    skipped: tuple[SkippedRow, ...]
    seconds: float
    has_slices: bool = False
    withheld: Withheld | None = None
    mean_depth: float | None = None
    """Depths that a token went through on average; None without exits."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `--json`."""
        return {
            "format_version": 1,
            "metric": self.metric,
            "examples": self.examples,
            "skipped": [
                {"file": str(r.path), "line": r.line, "reason": r.reason} for r in self.skipped
            ],
            "scores": self.evaluation.scores,
            "majority": self.majority,
            "classes": [asdict(row) for row in self.evaluation.class_table],
            "confusion": self.evaluation.confusion,
            "seconds": self.seconds,
            **({} if self.mean_depth is None else {"mean_depth": self.mean_depth}),
        } | extra_values(self.evaluation.slices if self.has_slices else None, self.withheld)

    def lines(self) -> list[str]:
        """Return the scores for a person."""
        scores = self.evaluation.scores
        rate = self.examples / max(self.seconds, 1e-9)
        depth = "" if self.mean_depth is None else f", {self.mean_depth:.2f} depths on average"
        lines = [
            f"{self.examples:,} examples in {self.seconds:.1f} s ({rate:,.0f} a second){depth}"
        ]
        lines += [f"{len(self.skipped):,} records left out"] if self.skipped else []
        lines += [f"{'':<18} {'model':>8} {'majority':>9}"]
        order = [self.metric, *(name for name in scores if name != self.metric)]
        lines += [
            f"{name:<18} {_number(scores.get(name)):>8} {_number(self.majority.get(name)):>9}"
            for name in order
        ]
        if self.evaluation.class_table:
            width = max(5, *(len(row.label) for row in self.evaluation.class_table))
            lines += ["", f"{'class':<{width}}  precision  recall      f1  examples"]
            lines += [
                f"{row.label:<{width}}  {row.precision:>9.3f}  {row.recall:>6.3f}  {row.f1:>6.3f}  {row.support:>8,}"
                for row in self.evaluation.class_table
            ]
        lines += slice_lines(self.evaluation.slices) if self.has_slices else []
        return lines + ([self.withheld.line()] if self.withheld else [])


def _number(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.4f}"


def evaluate_folder(folder: Path, job: EvaluationJob) -> EvaluationReport | RecordReport:
    """Score the model in `folder`.

    Raises:
        CheckpointError: no usable model, or one without a classification task.
        DataError: unusable data.
        SettingsError: the data lack a column, or there is no such split.
    """
    predictor = load(folder)
    task = predictor.required_task
    run = limit_depth(predictor, folder, depth=job.depth, exit_when=job.exit_when)
    if job.is_abstaining:
        refuse_numbers(task)
    if not isinstance(task, SequenceClassification):
        kind = kind_of(folder, cast("RecordTask", task), job.task)
        told = named_columns(job.text_columns, job.label_column, job.choice_columns)
        return evaluate_records(
            predictor,
            job.data,
            kind,
            columns=columns_of(folder, kind, told),
            split=job.split,
            encoding=job.encoding,
            on_bad_row=job.on_bad_row,
            has_slices=job.has_slices,
            abstain_below=job.abstain_below,
            target_accuracy=job.target_accuracy,
        )
    if job.choice_columns:
        raise SettingsError("--choice-column belongs to tables of choices; this model takes texts")
    examples, skipped = labelled_examples(task, job)
    start = time.monotonic()
    logits = predictor.logits(examples)
    seconds = time.monotonic() - start
    labels = np.asarray([task.encode_label(example) for example in examples])
    withheld = None
    if job.is_abstaining:
        withheld = withhold(
            *confidence_of(task, logits, labels),
            threshold=job.abstain_below,
            wanted=job.target_accuracy,
        )
    return EvaluationReport(
        metric=task.metric,
        examples=len(examples),
        evaluation=evaluate_answers(task, logits, labels, examples),
        majority=majority_baseline(task, examples, examples).scores,
        skipped=tuple(skipped),
        seconds=seconds,
        has_slices=job.has_slices,
        withheld=withheld,
        mean_depth=None if run is None else run.mean_depth,
    )


def labelled_examples(
    task: SequenceClassification, job: EvaluationJob
) -> tuple[list[Example], list[SkippedRow]]:
    """Return the examples to score a task of texts on, and what was left out.

    Raises:
        DataError: unusable data.
        SettingsError: the data lack a column, or there is no such split.
    """
    source = load_source(job.data, job.task, encoding=job.encoding, on_bad_row=job.on_bad_row)
    table = _choose(source, job.split)
    skipped = list(table.skipped)
    examples = make_examples(table, _schema(task, job), job.on_bad_row, skipped=skipped)
    if not examples:
        raise DataError("there is no usable record to score on", path=table.path)
    return examples, skipped


def _schema(task: SequenceClassification, job: EvaluationJob) -> Schema:
    """How the model was trained, with what is told about the columns on top."""
    schema = task.table_schema
    if job.text_columns:
        if len(job.text_columns) != len(schema.text_columns):
            takes = "pairs of texts" if task.is_pair else "one text"
            raise SettingsError(
                f"{len(job.text_columns)} text columns are told, but the model takes {takes}"
            )
        schema = schema.replace(text_columns=job.text_columns)
    if job.label_column is not None:
        schema = schema.replace(label_column=job.label_column, label_columns=())
    return schema


def _choose(source: Source, split: str) -> Table:
    tables = {"train": source.train, "eval": source.eval, "test": source.test}
    if split == "auto":
        return source.eval or source.train
    table = tables.get(split)
    if table is None:
        known = [name for name, found in tables.items() if found is not None]
        raise SettingsError(
            f"there is no split {split!r} in this source; there is: {', '.join(known)}"
        )
    return table
