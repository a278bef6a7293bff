"""What a run on records (questions, sentences to tag, choices) will do, worked out before it starts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from litebert.data.readers import NamedColumns, ReadOptions
from litebert.data.records import RecordSplit, split_records
from litebert.errors import DataError, SettingsError
from litebert.recipes.finetune.cost import estimate_lines, steps_of_seed
from litebert.recipes.finetune.defaults import default_num_seeds, default_train_settings
from litebert.recipes.finetune.model_choice import ModelChoice, choose_model
from litebert.recipes.finetune.option_lines import option_lines
from litebert.tasks.records import RECORD_KINDS

if TYPE_CHECKING:
    from litebert.data.batch import EncodedExample
    from litebert.data.records import Record
    from litebert.data.rows import SkippedRow
    from litebert.recipes.finetune.settings import DataSettings, FinetuneSettings
    from litebert.tasks.records import Feature, RecordKind, RecordTask

__all__ = [
    "RecordPart", "RecordPlan", "make_record_plan", "named_columns", "record_lengths", "record_texts",
    "require_columns_taken",
]  # fmt: skip

FEW_RECORDS: Final = 50
_NAMES: Final = frozenset({"id", "group", "path", "line", "spans", "intent", "answers", "label"})
"""Fields of a record that are no text to learn a vocabulary from: places, and answers to give."""


@dataclass(frozen=True, slots=True)
class RecordPart:
    """One part of the data.

    Attributes:
        examples: its records.
        features: the same, cut for the model; `index` of each is the position of its record.
    """

    examples: Sequence[Any]
    features: list[Feature]

    @property
    def encoded(self) -> list[EncodedExample]:
        """The features as token ids."""
        return [feature.encoded for feature in self.features]

    @property
    def num_tokens(self) -> int:
        """Real tokens."""
        return sum(len(feature.encoded) for feature in self.features)


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """Everything that is decided before training on records; the twin of `Plan`.

    Attributes:
        settings: what was asked for, completed.
        task: labels, lengths, options.
        model: configuration, tokenizer, and the weights to start from, if any.
        train: features with labels.
        eval, test: features of every record, for answers.
        sources: what train, eval and test were read from; None where held out or absent.
        skipped: records left out, each with its reason.
        notes: what was found and decided, in words.
        warnings: what is likely to spoil the training, see `hazards`.
    """

    settings: FinetuneSettings
    task: RecordTask
    model: ModelChoice
    train: RecordPart
    eval: RecordPart
    test: RecordPart | None
    sources: tuple[RecordSplit[Any] | None, ...]
    skipped: tuple[SkippedRow, ...]
    notes: tuple[str, ...] = field(default=())
    warnings: tuple[str, ...] = ()

    @property
    def num_seeds(self) -> int:
        """Trainings that differ only in the seed."""
        return default_num_seeds(self.settings.num_seeds, len(self.train.examples))

    @property
    def num_steps(self) -> int:
        """Optimizer steps of one seed, before early stopping."""
        return steps_of_seed(self.settings.train, len(self.train.features))

    @property
    def lengths(self) -> dict[int, int]:
        """Tokens -> number of training features."""
        return dict(Counter(len(feature.encoded) for feature in self.train.features))

    def parts(self) -> list[tuple[str, RecordPart, RecordSplit[Any] | None]]:
        """Return (role, part, source) of every part there is."""
        roles = (("train", self.train), ("eval", self.eval), ("test", self.test))
        return [
            (role, part, source)
            for (role, part), source in zip(roles, self.sources, strict=True)
            if part is not None
        ]

    def facts(self) -> dict[str, Any]:
        """Return what `data.json` says about the task."""
        return {"task": self.task.name, "labels": list(self.task.config_labels().values())}

    def describe(self) -> list[str]:
        """Return the plan in lines for a person."""
        settings, task = self.settings, self.task
        labels = list(task.config_labels().values())
        shown = ", ".join(labels[:8]) + (f", ... ({len(labels)})" if len(labels) > 8 else "")
        return [
            f"task      {task.name}, scored by {task.metric}" + (f": {shown}" if labels else ""),
            f"data      {len(self.train.examples):,} to train on ({len(self.train.features):,} sequences), "
            f"{len(self.eval.examples):,} to score on"
            + (f", {len(self.test.examples):,} in a test set" if self.test else "")
            + (f"; {len(self.skipped):,} skipped" if self.skipped else ""),
            f"length    at most {task.max_length} tokens",
            f"model     {self.model.describe()}",
            *option_lines(self),
            f"training  {self.num_seeds} x {self.num_steps:,} steps of {settings.train.batch_size} "
            f"examples, learning rate {settings.train.learning_rate:g}",
            *(f"note      {note}" for note in self.notes),
            *(f"warning   {warning}" for warning in self.warnings),
        ]

    def estimate(self) -> list[str]:
        """Return the expected time and memory of the whole run, as lines for a person."""
        return estimate_lines(self)


def make_record_plan(settings: FinetuneSettings) -> RecordPlan:
    """Read the records, split them, choose a model, and cut them into features.

    Raises:
        DataError: unreadable or unusable data, nothing to learn from.
        SettingsError: settings that contradict the data, or that these tasks do not have.
        CheckpointError: the model folder to start from is not usable.
    """
    data = settings.data
    kind = RECORD_KINDS.get(data.task or "")
    _refuse_table_settings(data)
    columns = named_columns(data.text_columns, data.label_column, data.choice_columns)
    require_columns_taken(kind, columns)
    options = ReadOptions(data.format, data.encoding, on_bad_row=data.on_bad_row, columns=columns)
    source = kind.read(Path(data.train), options, True)
    evaluation, test = source.eval, source.test
    if data.eval is not None:
        evaluation = kind.read(Path(data.eval), options, True).train
    train_records, notes = list[Any](source.train.records), [*source.notes]
    eval_records = [] if evaluation is None else list(evaluation.records)
    if evaluation is None:
        total = len(train_records)
        train_records, eval_records = split_records(
            train_records, data.eval_fraction, data.split_seed
        )
        notes.append(f"{len(eval_records):,} of {total:,} records are held out for scoring")
    if not train_records or not eval_records:
        where, what = ("train on", source.train) if not train_records else ("score on", evaluation)
        raise DataError(f"there is no usable record to {where}", path=(what or source.train).path)
    if data.max_examples is not None and len(train_records) > data.max_examples:
        order = np.random.default_rng(data.split_seed).permutation(len(train_records))
        train_records = [train_records[i] for i in sorted(order[: data.max_examples].tolist())]
    if len(eval_records) < FEW_RECORDS:
        notes.append(f"{len(eval_records)} records to score on make an uncertain score")
    told = (
        settings.task
        if data.max_length is None
        else settings.task | {"max_length": data.max_length}
    )
    task = kind.make_task(train_records, told)
    explain = getattr(task, "explain", None)
    notes.extend([] if explain is None else explain(train_records))
    # A passage comes with each of its questions; once is enough.
    texts = list(dict.fromkeys(t for record in train_records for t in record_texts(record)))
    model = choose_model(settings, task, texts, len(train_records))
    task = _within_positions(task, model, train_records, told, kind.make_task)
    train = RecordPart(train_records, task.features(train_records, model.tokenizer, labelled=True))
    if not train.features:
        raise DataError(
            f"none of the {len(train_records):,} records can be learnt from; check that labels and "
            "answers are there",
            path=source.train.path,
        )
    settings = settings.model_copy(
        update={
            "model": settings.model.model_copy(update={"source": model.source}),
            "task": dict(told),
            "train": default_train_settings(settings.train, model, len(train.features)),
            "num_seeds": default_num_seeds(settings.num_seeds, len(train_records)),
        }
    )
    skipped = [split.skipped for split in (source.train, evaluation, test) if split is not None]
    return RecordPlan(
        settings=settings,
        task=task,
        model=model,
        train=train,
        eval=_unlabelled(task, model, eval_records),
        test=_unlabelled(task, model, test.records) if test and test.records else None,
        sources=(source.train, evaluation, test),
        skipped=tuple(row for rows in skipped for row in rows),
        notes=tuple(notes),
    )


def _refuse_table_settings(data: DataSettings) -> None:
    for name in ("kind", "metric"):
        if getattr(data, name) is not None:
            raise SettingsError(
                f"data.{name} belongs to tables of texts and labels; task {data.task!r} reads its own "
                "format, leave it out"
            )
    if data.long_texts != "truncate" or data.stride is not None:
        raise SettingsError(
            f"data.long_texts and data.stride belong to tables of texts and labels; task {data.task!r} "
            "cuts long texts in its own way (task.stride, where it has windows), leave them out"
        )


def named_columns(
    text: Sequence[str] | None, label: str | None, choices: Sequence[str] | None
) -> NamedColumns:
    """Return the columns that were told; None and () are not told."""
    return NamedColumns(tuple(text or ()), label or None, tuple(choices or ()))


def require_columns_taken(kind: RecordKind, columns: NamedColumns) -> None:
    """Refuse columns for a kind that has its own file format.

    Raises:
        SettingsError: there are some.
    """
    if columns and not kind.takes_columns:
        takes = ", ".join(name for name in RECORD_KINDS if RECORD_KINDS.get(name).takes_columns)
        raise SettingsError(
            f"task {kind.name!r} reads its own file format and takes no names of columns (that do "
            f"{takes}); leave out text_columns, label_column and choice_columns"
        )


def _within_positions(
    task: RecordTask, model: ModelChoice, records: Sequence[Record], told: dict[str, Any], make: Any
) -> RecordTask:
    """Return the task with sequences that the model has positions for.

    Raises:
        SettingsError: a longer length was told.
    """
    positions = model.config.max_position_embeddings
    if task.max_length <= positions:
        return task
    if "max_length" in told:
        raise SettingsError(
            f"max_length is {task.max_length}, but the model has {positions} positions; give at "
            f"most {positions}"
        )
    return cast("RecordTask", make(records, told | {"max_length": positions}))


def _unlabelled(task: RecordTask, model: ModelChoice, records: Sequence[Any]) -> RecordPart:
    return RecordPart(records, task.features(records, model.tokenizer, labelled=False))


def record_lengths(records: Sequence[Any]) -> list[int]:
    """Return the characters of all texts in each record."""
    return [sum(map(len, record_texts(record))) for record in records]


def record_texts(record: Any) -> Iterator[str]:
    """Yield every text in a record, however deep, names and places aside."""
    for part in dataclasses.fields(record):
        if part.name not in _NAMES:
            yield from _texts_in(getattr(record, part.name))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from _texts_in(item)
    elif dataclasses.is_dataclass(value):
        yield from record_texts(value)
