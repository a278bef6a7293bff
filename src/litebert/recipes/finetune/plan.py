"""What a fine-tuning run will do, worked out and explained before it starts."""

from __future__ import annotations

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
from litebert.recipes.finetune.few_shot import PairSchedule, pair_schedule
from litebert.recipes.finetune.few_shot_choice import choose_few_shot
from litebert.recipes.finetune.model_choice import ModelChoice, choose_model
from litebert.recipes.finetune.option_lines import option_lines
from litebert.recipes.finetune.text_length import cut_fraction, fit_length
from litebert.tasks.classification import SequenceClassification
from litebert.tasks.long_texts import (
    MOST_WINDOWS,
    MOST_WINDOWS_TO_LEARN,
    encode_long,
    text_bounds,
)

if TYPE_CHECKING:
    from litebert.data.batch import EncodedExample
    from litebert.data.rows import SkippedRow
    from litebert.data.tables import Table
    from litebert.recipes.finetune.settings import DataSettings, FinetuneSettings

__all__ = ["Plan", "Split", "make_table_plan"]

FEW_EXAMPLES: Final = 50
"""Below this a score says little: its 95 % interval is wider than 14 points on each side."""


@dataclass(frozen=True, slots=True)
class Split:
    """One part of the data.

    Attributes:
        examples: texts and labels.
        encoded: the same as token ids; several windows of a long text lie next to each other.
    """

    examples: list[Example]
    encoded: list[EncodedExample]

    @property
    def num_tokens(self) -> int:
        """Real tokens."""
        return sum(len(example.ids) for example in self.encoded)

    def labels(self) -> np.ndarray:
        """Return the labels of the texts in the form that the task scores: [N] or [N, C]."""
        return np.asarray([self.encoded[first].label for first in self.bounds.tolist()])

    @property
    def bounds(self) -> np.ndarray:
        """[N] position of the first window of each text in `encoded`."""
        return text_bounds(self.encoded)


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
        truncated_fraction: share of training examples of which something is not read.
        others: name, examples and table of further labelled parts to report on.
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
    others: tuple[tuple[str, Split, Table], ...] = ()

    @property
    def num_seeds(self) -> int:
        """Trainings that differ only in the seed."""
        return default_num_seeds(self.settings.num_seeds, len(self.train.examples))

    @property
    def pairs(self) -> PairSchedule | None:
        """How pairs of few examples are learnt from; None for ordinary training."""
        if not self.is_few_shot:
            return None
        counts = Counter(str(example.label) for example in self.train.examples)
        return pair_schedule(list(counts.values()), self.model.config.hidden_size)

    @property
    def num_steps(self) -> int:
        """Optimizer steps of one seed, before early stopping."""
        if self.pairs is not None:
            return self.pairs.steps
        return steps_of_seed(self.settings.train, len(self.train.encoded))

    def parts(self) -> list[tuple[str, Split, Table | None]]:
        """Return (role, split, table) of every part there is."""
        train, evaluation, test = self.tables
        parts: list[tuple[str, Split, Table | None]] = [
            ("train", self.train, train),
            ("eval", self.eval, evaluation),
        ]
        return parts + ([("test", self.test, test)] if self.test else []) + list(self.others)

    def facts(self) -> dict[str, Any]:
        """Return what `data.json` says about the task."""
        return {"schema": self.schema.to_json()}

    def describe(self) -> list[str]:
        """Return the plan in lines for a person: what was inferred and why, and what it costs."""
        task = self.task
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
            f"length    at most {task.max_length} tokens; {self._long_texts()}",
            f"model     {self.model.describe()}",
            *option_lines(self),
            self._training(),
        ]
        lines += [f"note      {note}" for note in self.notes]
        return lines + [f"warning   {warning}" for warning in self.warnings]

    def _training(self) -> str:
        train, pairs = self.settings.train, self.pairs
        what, size = (
            ("examples", train.batch_size) if pairs is None else ("pairs", pairs.batch_size)
        )
        rate = train.learning_rate if pairs is None else pairs.learning_rate
        return f"training  {self.num_seeds} x {self.num_steps:,} steps of {size} {what}, learning rate {rate:g}"

    def _long_texts(self) -> str:
        cut = f"{self.truncated_fraction:.1%} of the texts are cut"
        if self.task.stride is None:
            return cut
        long = sum(n for tokens, n in self.lengths.items() if tokens > self.task.max_length)
        return (
            f"{long / len(self.train.examples):.1%} of the texts are longer and read in windows that "
            f"start every {self.task.stride} pieces, {len(self.train.encoded):,} in all; {cut}"
        )

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
    if data.choice_columns is not None:
        raise SettingsError(
            "data.choice_columns belongs to tables of choices; say --task choice, or leave it out"
        )
    if data.stride is not None and data.long_texts != "windows":
        raise SettingsError(
            'data.stride is for windows; set data.long_texts = "windows" too, or leave it out'
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
    others: list[tuple[str, list[Example], Table]] = []
    for name, table in source.others:
        skipped.extend(table.skipped)
        further = make_examples(table, schema, data.on_bad_row, skipped=skipped)
        others.extend([(name, further, table)] if further else [])
    task = SequenceClassification.from_schema(schema, examples)
    model = choose_model(settings, task, example_texts(examples), len(examples))
    is_few_shot, reason = choose_few_shot(settings, task, model, examples)
    notes.extend([reason] if reason else [])
    task, lengths = fit_length(task, model, examples, data)
    train = _encode(task, model, examples, MOST_WINDOWS_TO_LEARN)
    settings = settings.model_copy(
        update={
            "model": settings.model.model_copy(update={"source": model.source}),
            "train": default_train_settings(settings.train, model, len(train.encoded)),
            "num_seeds": default_num_seeds(settings.num_seeds, len(examples)),
            "few_shot": is_few_shot,  # a resumed run is told all settings and must not choose anew
        }
    )
    return Plan(
        settings=settings,
        schema=schema,
        task=task,
        model=model,
        train=train,
        eval=_encode(task, model, evaluation),
        test=_encode(task, model, test) if test else None,
        skipped=tuple(skipped),
        truncated_fraction=cut_fraction(task, model, examples, lengths),
        tables=(source.train, source.eval, source.test),
        lengths=dict(Counter(lengths)),
        notes=tuple(notes),
        is_few_shot=is_few_shot,
        others=tuple(
            (name, _encode(task, model, further), table) for name, further, table in others
        ),
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


def _encode(
    task: SequenceClassification,
    model: ModelChoice,
    examples: list[Example],
    at_most: int = MOST_WINDOWS,
) -> Split:
    encoded = [
        window
        for index, example in enumerate(examples)
        for window in encode_long(task, example, model.tokenizer, index=index, at_most=at_most)
    ]
    return Split(examples, encoded)
