"""What a fine-tuning run will do, worked out and explained before it starts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.data.examples import Example, example_texts, make_examples
from litebert.data.schema import Schema
from litebert.data.sources import Source, load_source
from litebert.data.split import split_examples
from litebert.errors import DataError, SettingsError
from litebert.recipes.finetune.cost import estimate_lines, steps_of_seed
from litebert.recipes.finetune.defaults import default_num_seeds, default_train_settings
from litebert.recipes.finetune.few_shot_choice import choose_few_shot
from litebert.recipes.finetune.model_choice import ModelChoice, choose_model
from litebert.recipes.finetune.option_lines import option_lines
from litebert.tasks.classification import SequenceClassification

if TYPE_CHECKING:
    from litebert.data.batch import EncodedExample
    from litebert.data.rows import SkippedRow
    from litebert.data.tables import Table
    from litebert.recipes.finetune.settings import DataSettings, FinetuneSettings

__all__ = ["Plan", "Split", "make_table_plan"]

COVERED_FRACTION: Final = 0.995
"""Share of training examples that the automatic maximum length leaves whole."""
AUTO_MAX_LENGTH: Final = 256
FEW_EXAMPLES: Final = 50
"""Below this a score says little: its 95 % interval is wider than 14 points on each side."""


@dataclass(frozen=True, slots=True)
class Split:
    """One part of the data: its examples, and the same as token ids."""

    examples: list[Example]
    encoded: list[EncodedExample]

    @property
    def num_tokens(self) -> int:
        """Real tokens."""
        return sum(len(example.ids) for example in self.encoded)

    def labels(self) -> np.ndarray:
        """Return the labels in the form that the task scores: [N] or [N, C]."""
        return np.asarray([example.label for example in self.encoded])


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is decided before training.

    Attributes:
        settings: what was asked for.
        schema: columns and kind, with reasons.
        task: labels, metric, length.
        model: configuration, tokenizer, and the weights to start from, if any.
        train, eval: the two splits.
        test: a third one, if the source has a labelled one.
        skipped: records left out, each with its reason.
        truncated_fraction: share of training examples that are cut.
        tables: what train, eval and test were read from; None where there is none.
        lengths: tokens before cutting -> number of training examples.
        notes: further decisions, in words.
        warnings: what is likely to spoil the training, see `hazards`.
        is_few_shot: training is on pairs of examples, see `few_shot`.
    """

    settings: FinetuneSettings
    schema: Schema
    task: SequenceClassification
    model: ModelChoice
    train: Split
    eval: Split
    test: Split | None
    skipped: tuple[SkippedRow, ...]
    truncated_fraction: float
    tables: tuple[Table | None, Table | None, Table | None]
    lengths: dict[int, int]
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = ()
    is_few_shot: bool = False

    @property
    def num_seeds(self) -> int:
        """Trainings that differ only in the seed."""
        return default_num_seeds(self.settings.num_seeds, len(self.train.examples))

    @property
    def num_steps(self) -> int:
        """Optimizer steps of one seed, before early stopping."""
        return steps_of_seed(self.settings.train, len(self.train.encoded))

    def parts(self) -> list[tuple[str, Split, Table | None]]:
        """Return (role, split, table) of every part there is."""
        train, evaluation, test = self.tables
        parts: list[tuple[str, Split, Table | None]] = [
            ("train", self.train, train),
            ("eval", self.eval, evaluation),
        ]
        return parts + ([("test", self.test, test)] if self.test else [])

    def facts(self) -> dict[str, Any]:
        """Return what `data.json` says about the task."""
        return {"schema": self.schema.to_json()}

    def describe(self) -> list[str]:
        """Return the plan in lines for a person: what was inferred and why, and what it costs."""
        settings, task = self.settings, self.task
        labels = ", ".join(task.labels[:8]) + (
            f", ... ({len(task.labels)})" if len(task.labels) > 8 else ""
        )
        lines = [
            f"text      {' + '.join(task.text_columns)}",
            f"label     {task.label_column}" + (f": {labels}" if labels else ""),
            f"task      {task.kind}, scored by {task.metric}",
            *(f"  because {reason}" for reason in self.schema.reasons),
            f"data      {len(self.train.examples):,} to train on, {len(self.eval.examples):,} to score on"
            + (f", {len(self.test.examples):,} in a test set" if self.test else "")
            + (f"; {len(self.skipped):,} skipped" if self.skipped else ""),
            f"length    at most {task.max_length} tokens; {self.truncated_fraction:.1%} of the texts are cut",
            f"model     {self.model.describe()}",
            *option_lines(self),
            f"training  {self.num_seeds} x {self.num_steps:,} steps of {settings.train.batch_size} examples, "
            f"learning rate {settings.train.learning_rate:g}",
        ]
        lines += [f"note      {note}" for note in self.notes]
        return lines + [f"warning   {warning}" for warning in self.warnings]

    def estimate(self) -> list[str]:
        """Return the expected time and memory of the whole run, as lines for a person."""
        return estimate_lines(self)


def make_table_plan(settings: FinetuneSettings) -> Plan:
    """Read a table, infer the task, split, choose a model, and encode.

    Raises:
        DataError: unreadable or unusable data.
        SettingsError: settings that contradict the data.
        CheckpointError: the model folder to start from is not usable.
    """
    data = settings.data
    if settings.task:
        raise SettingsError(
            f"task.{next(iter(settings.task))} belongs to tasks over records such as squad; a table "
            "of texts and labels has no such option"
        )
    source = _read(data)
    schema = source.schema(
        text_columns=data.text_columns,
        label_column=data.label_column,
        kind=data.kind,
        metric=data.metric,
    )
    skipped: list[SkippedRow] = [*source.train.skipped]
    examples = make_examples(source.train, schema, data.on_bad_row, skipped=skipped)
    evaluation, notes = None, list[str]()
    if source.eval is not None:
        skipped.extend(source.eval.skipped)
        evaluation = make_examples(source.eval, schema, data.on_bad_row, skipped=skipped)
        if not evaluation:
            raise DataError("there is no usable row to score on", path=source.eval.path)
    if evaluation is None:
        total = len(examples)
        examples, evaluation = split_examples(examples, data.eval_fraction, data.split_seed)
        notes.append(
            f"{len(evaluation):,} of {total:,} examples ({len(evaluation) / total:.1%}, stratified) "
            "are held out for scoring"
        )
    examples = _sample(examples, data)
    _require_classes(schema, examples)
    notes.extend(_unscored(schema, evaluation))
    if len(evaluation) < FEW_EXAMPLES:
        notes.append(f"{len(evaluation)} examples to score on make an uncertain score")
    test = _test_examples(source, schema, data, skipped)
    task = SequenceClassification.from_schema(schema, examples)
    model = choose_model(settings, task, example_texts(examples), len(examples))
    is_few_shot, reason = choose_few_shot(settings, task, model, examples)
    notes.extend([reason] if reason else [])
    settings = settings.model_copy(
        update={
            "train": default_train_settings(settings.train, model, len(examples)),
            "num_seeds": default_num_seeds(settings.num_seeds, len(examples)),
            "few_shot": is_few_shot,  # a resumed run is told all settings and must not choose anew
        }
    )
    task, lengths = _fit_length(task, model, examples, data.max_length)
    truncated = sum(tokens > task.max_length for tokens in lengths) / len(lengths)
    return Plan(
        settings=settings,
        schema=schema,
        task=task,
        model=model,
        train=_encode(task, model, examples),
        eval=_encode(task, model, evaluation),
        test=_encode(task, model, test) if test else None,
        skipped=tuple(skipped),
        truncated_fraction=truncated,
        tables=(source.train, source.eval, source.test),
        lengths=dict(Counter(lengths)),
        notes=tuple(notes),
        is_few_shot=is_few_shot,
    )


def _require_classes(schema: Schema, examples: Sequence[Example]) -> None:
    """A model that sees one class only learns nothing, whatever it scores."""
    found = {example.label for example in examples}
    if schema.kind in ("binary", "multiclass") and len(found) < 2:
        raise DataError(
            f"all {len(examples):,} examples that are left to train on have the one label "
            f"{next(iter(found), None)!r:.80}; give more different texts of each label, or a file to "
            "score on with --eval",
            path=examples[0].path if examples else None,
        )


def _unscored(schema: Schema, evaluation: Sequence[Example]) -> list[str]:
    """Say how many classes the score tells nothing about."""
    if schema.kind not in ("binary", "multiclass"):
        return []
    missing = len(set(schema.labels) - {str(example.label) for example in evaluation})
    if not missing:
        return []
    return [f"{missing:,} of {len(schema.labels):,} labels have no example to score on"]


def _read(data: DataSettings) -> Source:
    return load_source(
        Path(data.train),
        eval_path=Path(data.eval) if data.eval else None,
        task=data.task,
        format=data.format,
        encoding=data.encoding,
        on_bad_row=data.on_bad_row,
    )


def _sample(examples: list[Example], data: DataSettings) -> list[Example]:
    if data.max_examples is None or len(examples) <= data.max_examples:
        return examples
    chosen = np.random.default_rng(data.split_seed).permutation(len(examples))[: data.max_examples]
    return [examples[index] for index in sorted(chosen.tolist())]


def _test_examples(
    source: Source, schema: Schema, data: DataSettings, skipped: list[SkippedRow]
) -> list[Example]:
    """Labelled test examples; test files without labels are none."""
    table = source.test
    if table is None or (schema.label_column and schema.label_column not in table.columns):
        return []  # test files of public benchmarks come without labels
    skipped.extend(table.skipped)
    return make_examples(table, schema, data.on_bad_row, skipped=skipped)


def _fit_length(
    task: SequenceClassification, model: ModelChoice, examples: Sequence[Example], told: int | None
) -> tuple[SequenceClassification, list[int]]:
    """Set the maximum length; return the task and the uncut length of each example in tokens."""
    limit = model.config.max_position_embeddings
    probe = [_uncut_length(model, example, limit) for example in examples]
    if told is not None and told > limit:
        raise SettingsError(
            f"max_length is {told}, but the model has {limit} positions; give at most {limit}"
        )
    covering = math.ceil(float(np.quantile(probe, COVERED_FRACTION)))
    length = told or max(16, min(limit, AUTO_MAX_LENGTH, 8 * math.ceil(covering / 8)))
    return task.model_copy(update={"max_length": length}), probe


def _uncut_length(model: ModelChoice, example: Example, limit: int) -> int:
    encoding = model.tokenizer.encode(example.text, example.pair, max_length=limit)
    return len(encoding.ids) + encoding.truncated


def _encode(task: SequenceClassification, model: ModelChoice, examples: list[Example]) -> Split:
    encoded = [
        task.encode(example, model.tokenizer, index=index) for index, example in enumerate(examples)
    ]
    return Split(examples, encoded)
