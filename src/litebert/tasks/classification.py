"""Sequence classification and regression over one text or a pair of texts.

Covers two classes, many classes, any subset of labels, and a number; one class, because they share
the encoder input, the head and the file format and differ only in what a label is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from litebert.data.kinds import Kind
from litebert.data.labels import label_order
from litebert.errors import DataError, SettingsError
from litebert.tasks import calibration
from litebert.tasks.base import TASKS, Prediction
from litebert.tasks.correlation import regression_scores
from litebert.tasks.labels import find_label, label_names, label_target
from litebert.tasks.metrics import classification_scores
from litebert.tasks.multilabel import multilabel_scores
from litebert.tasks.scores import DEFAULT_SCORE, canonical_score
from litebert.tasks.stored import StoredTask, first_fault

if TYPE_CHECKING:
    from jaxtyping import Float, Num

    from litebert.data.batch import EncodedExample
    from litebert.data.examples import Example
    from litebert.data.schema import Schema
    from litebert.text.tokenizer import Tokenizer

__all__ = ["SequenceClassification"]

_PROBLEM_TYPES: Final[dict[Kind, str]] = {
    "binary": "single_label_classification",
    "multiclass": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}

MAX_TARGET: Final = 1e30
"""Largest regression target; its square still has room in the number types that are used."""


class SequenceClassification(StoredTask):
    """A label, several labels or a number for a text or a pair of texts."""

    kind: Kind
    labels: tuple[str, ...] = ()
    """Label names in the order of their ids; empty for regression."""
    metric: str
    """Main score, a name of `litebert.tasks.scores.SCORES`."""
    text_columns: tuple[str, ...] = Field(default=("text",), min_length=1, max_length=2)
    """Columns of the training table; two of them for pairs."""
    label_column: str | None = "label"
    """Column of the labels; None when `label_columns` are 0/1 columns."""
    label_columns: tuple[str, ...] = ()
    label_separator: str | None = None
    """What stands between labels in one cell of a multi-label table."""
    max_length: int = Field(default=128, ge=3)
    """Tokens of one encoded example, special tokens included."""
    stride: int | None = Field(default=None, ge=1)
    """Longer texts are read in windows, each so many pieces after the one before; None: they are cut."""
    temperature: float = Field(default=1.0, ge=1e-3, le=1e3, allow_inf_nan=False)
    """Divides the logits before softmax or sigmoid; fitted by `calibrated`."""
    threshold: float = Field(default=0.5, ge=0, le=1)
    """Multi-label: a label is answered when its probability is at least this."""
    target_mean: float = Field(default=0.0, ge=-MAX_TARGET, le=MAX_TARGET)
    target_scale: float = Field(default=1.0, gt=0, le=MAX_TARGET)
    """Regression: the model learns (target - target_mean) / target_scale."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        count = len(self.labels)
        if len(set(self.labels)) != count:
            raise ValueError("labels: a name occurs twice")
        if self.stride is not None and self.stride > self.max_length - 2:
            raise ValueError(
                f"stride: {self.stride} would skip pieces; allowed: 1 to max_length - 2 = "
                f"{self.max_length - 2}"
            )
        if self.kind == "binary" and count != 2:
            raise ValueError(f"labels: binary needs exactly 2 labels, got {count}")
        if self.kind == "multiclass" and count < 2:
            raise ValueError(f"labels: multiclass needs at least 2 labels, got {count}")
        if self.kind == "multilabel" and count < 1:
            raise ValueError("labels: multilabel needs at least 1 label")
        if self.kind == "regression" and count:
            raise ValueError("labels: regression has none")
        try:
            canonical_score(self.metric, self.kind)
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return self

    @classmethod
    def from_examples(
        cls, kind: Kind, examples: Iterable[Example], *, metric: str | None = None, **options: Any
    ) -> Self:
        """Build the task from labelled examples: label map, or mean and spread of the targets.

        Args:
            kind: what a label is.
            examples: the training examples; those without a label are passed over.
            metric: main score; the usual one of the kind when None.
            options: further fields, for example `text_columns` or `max_length`.

        Raises:
            DataError: no labels, one class only, or a target that is not a finite number.
            SettingsError: a metric that the kind does not have.
        """
        name = canonical_score(metric or DEFAULT_SCORE[kind], kind)
        labelled = [example for example in examples if example.label is not None]
        if not labelled:
            raise DataError(
                "no example has a label, so there is nothing to learn; name the right column "
                "with --label-column"
            )
        if kind == "regression":
            numbers = np.array([label_target(example) for example in labelled])
            if np.abs(numbers).max() > MAX_TARGET:
                raise DataError(
                    f"a target is {np.abs(numbers).max():g}, allowed are -{MAX_TARGET:g} to "
                    f"{MAX_TARGET:g}; give the numbers in a larger unit"
                )
            spread = float(numbers.std())
            values = {
                "target_mean": float(numbers.mean()),
                # A constant target has no spread; dividing by 1 keeps the task well defined.
                "target_scale": spread if spread > 0 else 1.0,
            }
        else:
            values = {"labels": label_order(n for e in labelled for n in label_names(e, kind))}
        try:
            return cls.model_validate({"kind": kind, "metric": name} | values | options)
        except ValidationError as error:
            raise DataError(
                f"the labels do not make a {kind} task: {first_fault(error)}"
            ) from error

    @classmethod
    def from_schema(cls, schema: Schema, examples: Iterable[Example], **options: Any) -> Self:
        """Build the task of a table: columns, labels and metric as the schema has them.

        Raises:
            DataError: the labels do not make such a task.
            SettingsError: a metric that the kind does not have.
        """
        columns = {
            "text_columns": schema.text_columns,
            "label_column": schema.label_column,
            "label_columns": schema.label_columns,
            "label_separator": schema.label_separator,
        }
        labels = {"labels": schema.labels} if schema.labels else {}
        return cls.from_examples(
            schema.kind, examples, metric=schema.metric, **(columns | labels | options)
        )

    @property
    def table_schema(self) -> Schema:
        """How to read another table for this task."""
        from litebert.data.schema import Schema

        return Schema(
            text_columns=self.text_columns,
            label_column=self.label_column,
            kind=self.kind,
            labels=self.labels,
            label_separator=self.label_separator,
            metric=self.metric,
            reasons=("as the model was trained",),
            label_columns=self.label_columns,
        )

    @property
    def name(self) -> str:
        """Name in the `TASKS` registry."""
        return "sequence_classification"

    @property
    def head(self) -> str:
        """Word for the model head."""
        return "sequence"

    @property
    def problem_type(self) -> str:
        """Loss family, in the published spelling of `config.json`."""
        return _PROBLEM_TYPES[self.kind]

    @property
    def is_pair(self) -> bool:
        """Whether an example has two texts."""
        return len(self.text_columns) == 2

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`; regression names its one output by the column."""
        return dict(enumerate(self.labels or (self.label_column or "score",)))

    def encode(
        self,
        example: Example,
        tokenizer: Tokenizer,
        max_length: int | None = None,
        *,
        index: int = 0,
    ) -> EncodedExample:
        """Turn text and label into ids, cut to `max_length` tokens (the task's own when None).

        With a `stride`, `litebert.tasks.long_texts.encode_long` reads all of a text instead.

        Raises:
            DataError: a second text is missing or unexpected, or the label does not fit.
        """
        from litebert.data.batch import EncodedExample

        if (example.pair is not None) != self.is_pair:
            got, remedy = (
                ("one text", "give the second text too (--pair, or a tuple of two texts)")
                if example.pair is None
                else ("a pair of texts", "leave the second text out")
            )
            raise DataError(
                f"got {got}, but the model was trained on {' + '.join(self.text_columns)}; {remedy}",
                path=example.path,
                line=example.line,
            )
        encoding = tokenizer.encode(
            example.text, example.pair, max_length=max_length or self.max_length
        )
        return EncodedExample(
            ids=np.asarray(encoding.ids, dtype=np.int32),
            type_ids=np.asarray(encoding.type_ids, dtype=np.int32),
            label=self.encode_label(example),
            index=index,
        )

    def encode_label(self, example: Example) -> np.ndarray | int | float | None:
        """Return a class id, a 0/1 row [C], a standardised number, or None without a label.

        Raises:
            DataError: a label that is not in the label map, or a target that is no number.
        """
        if example.label is None:
            return None
        if self.kind == "regression":
            return (label_target(example) - self.target_mean) / self.target_scale
        ids = [
            find_label(name, self._ids, path=example.path, line=example.line)
            for name in label_names(example, self.kind)
        ]
        if self.kind != "multilabel":
            return ids[0]
        row = np.zeros(len(self.labels), dtype=np.float32)
        row[ids] = 1.0
        return row

    def probabilities(self, logits: Float[np.ndarray, "N C"]) -> Float[np.ndarray, "N C"]:
        """Return calibrated probabilities in [0, 1], in float64.

        Raises:
            DataError: a regression task, or logits that are not finite [N, C].
        """
        if self.kind == "regression":
            raise DataError("a regression task has no probabilities; use `values`")
        scaled = self._checked(logits) / self.temperature
        return (calibration.sigmoid if self.kind == "multilabel" else calibration.softmax)(scaled)

    def values(self, logits: Float[np.ndarray, "N 1"]) -> Float[np.ndarray, " N"]:
        """Return regression answers in units of the target.

        Raises:
            DataError: logits that are not finite [N, 1].
        """
        return self._checked(logits)[:, 0] * self.target_scale + self.target_mean

    def decode(self, logits: Float[np.ndarray, "N C"]) -> list[Prediction]:
        """Turn logits into answers, with the temperature and threshold of the task.

        Raises:
            DataError: logits that are not finite [N, C].
        """
        if self.kind == "regression":
            return [Prediction(label=v, score=v) for v in self.values(logits).tolist()]
        return [self._answer(row) for row in self.probabilities(logits)]

    def score(
        self, logits: Float[np.ndarray, "N C"], labels: Num[np.ndarray, "*S"]
    ) -> dict[str, float]:
        """Score logits against labels in the form that `encode_label` gives them.

        Regression scores are in units of the target, not of the standardised number.

        Raises:
            DataError: shapes or ids that do not fit, or logits that are not finite.
        """
        if self.kind == "regression":
            truth = np.asarray(labels, np.float64) * self.target_scale + self.target_mean
            return regression_scores(self.values(logits), truth)
        p = self.probabilities(logits)
        if self.kind == "multilabel":
            scores = multilabel_scores(p, labels, threshold=self.threshold)
            confidence = calibration.binary_confidence(p, labels)
        else:
            scores = classification_scores(p, labels)
            confidence = calibration.top_confidence(p, labels)
        return scores | {"ece": calibration.expected_calibration_error(*confidence)}

    def calibrated(self, logits: Float[np.ndarray, "N C"], labels: Num[np.ndarray, "*S"]) -> Self:
        """Return the task with the temperature that fits held-out logits best.

        Regression is returned unchanged.

        Raises:
            DataError: shapes that do not fit, or logits that are not finite.
        """
        if self.kind == "regression":
            return self
        fit = (
            calibration.fit_binary_temperature
            if self.kind == "multilabel"
            else calibration.fit_temperature
        )
        return self.model_copy(update={"temperature": fit(self._checked(logits), labels)})

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.labels)}

    def _answer(self, row: Float[np.ndarray, " C"]) -> Prediction:
        order = np.argsort(-row, kind="stable")
        scores = {self.labels[i]: float(row[i]) for i in order}
        if self.kind != "multilabel":
            best = int(order[0])
            return Prediction(label=self.labels[best], score=float(row[best]), scores=scores)
        chosen = row >= self.threshold
        return Prediction(
            label=tuple(self.labels[i] for i in order if chosen[i]),
            score=float(np.where(chosen, row, 1.0 - row).min()),
            scores=scores,
        )

    def _checked(self, logits: np.ndarray) -> Float[np.ndarray, "N C"]:
        z, width = np.asarray(logits, dtype=np.float64), len(self.config_labels())
        if z.ndim != 2 or z.shape[1] != width:
            raise DataError(
                f"logits have shape {z.shape}, the task has {width} outputs and needs [N, {width}]; "
                "the model and its task.json do not belong together"
            )
        wrong = np.flatnonzero(~np.isfinite(z).all(axis=1))
        if wrong.size:
            raise DataError(
                f"the model gave NaN or infinity for {wrong.size} of {len(z)} examples, first "
                f"example {int(wrong[0])}; it has diverged: train again with a lower learning rate"
            )
        return z


# Not as a decorator: that would hide the class behind the protocol from type checkers.
TASKS.register("sequence_classification")(SequenceClassification)
