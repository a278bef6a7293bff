"""What a task over records is: it cuts records into features, and puts outputs together to answers.

A record (a question with its passage, a sentence to tag, a question with choices) may need several
sequences, and its answer is more than a label. Such a task reads its own file formats, works on
numpy arrays only, and is stored as `task.json` like every other. `litebert train --task NAME` finds
it in `RECORD_KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from litebert.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from litebert.data.batch import EncodedExample
    from litebert.data.readers import ReadOptions
    from litebert.data.records import Record, RecordSource
    from litebert.tasks.baselines import Baseline
    from litebert.text.tokenizer import Tokenizer

__all__ = ["RECORD_KINDS", "Answer", "Feature", "RecordKind", "RecordTask"]


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """A part of a record as the model sees it: a window of a passage, a question with its choices.

    Attributes:
        encoded: ids and label; its `index` is the position of the record in the given records.
        details: what the task needs to read the outputs, such as character offsets.
    """

    encoded: EncodedExample
    details: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one record.

    Attributes:
        value: a text, a label, a list of entities: JSON values only.
        score: probability of the answer in [0, 1], or the task's own measure.
        details: further JSON values for `predict` (n-best, probabilities); small.
    """

    value: Any
    score: float
    details: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """Return the published output columns `prediction`, `score` and the details."""
        return {"prediction": self.value, "score": self.score} | self.details


class RecordTask(Protocol):
    """One task over records, with its labels, lengths and thresholds; immutable.

    `name`, `head`, `problem_type`, `config_labels`, `to_json` and `from_json` are as in
    `litebert.tasks.base.Task`.
    """

    @property
    def name(self) -> str:
        """Name in `TASKS` and in `RECORD_KINDS`."""
        ...

    @property
    def head(self) -> str:
        """Word for the model head, for example "span"."""
        ...

    @property
    def loss(self) -> str:
        """Word for what is minimised, a name of `litebert.train.step_losses`; usually "labels"."""
        ...

    @property
    def problem_type(self) -> str | None:
        """Loss family in `config.json`, where the head has several."""
        ...

    @property
    def metric(self) -> str:
        """Name of the main score, a key of what `evaluate` returns; higher is better."""
        ...

    @property
    def max_length(self) -> int:
        """Tokens of the longest sequence."""
        ...

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`."""
        ...

    def features(
        self, records: Sequence[Any], tokenizer: Tokenizer, *, labelled: bool
    ) -> list[Feature]:
        """Cut records into features; with `labelled`, what cannot be learnt from is left out.

        Without `labelled` each record has at least one feature.
        """
        ...

    def answers(
        self,
        records: Sequence[Any],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "rows C"]],
    ) -> list[Answer]:
        """Return one answer for each record.

        Args:
            records: as given to `features`.
            features: what `features` returned without `labelled`.
            outputs: what the head gave for each feature: [S, C] for heads that answer for each
                token, one row for each sequence otherwise.
        """
        ...

    def evaluate(self, records: Sequence[Any], answers: Sequence[Answer]) -> dict[str, float]:
        """Score answers against the labels of the records by the official rules.

        Shares are in [0, 1], also where the official program prints percent.
        """
        ...

    def fitted(
        self,
        records: Sequence[Any],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "rows C"]],
    ) -> Self:
        """Return the task with thresholds chosen on these labelled records; itself if it has none."""
        ...

    def faults(self, records: Sequence[Any], answers: Sequence[Answer]) -> list[str]:
        """Return what looks like a collapse (all answers empty, one choice always), in sentences.

        Each names the likely cause and what to do.
        """
        ...

    def baselines(self, train: Sequence[Any], evaluation: Sequence[Any]) -> list[Baseline]:
        """Return simple answers to the evaluation records, scored by `evaluate`."""
        ...

    def show(self, record: Any) -> dict[str, Any]:
        """Return what identifies and explains a record in a file of predictions, JSON values only.

        The label has the key "label", the place "file" and "line".
        """
        ...

    def to_json(self) -> str:
        """Return the text of `task.json`."""
        ...

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, path: Path | None = None) -> Self:
        """Build the task from the parsed `task.json`."""
        ...


@dataclass(frozen=True, slots=True)
class RecordKind:
    """A family of data sets that one task class learns.

    Attributes:
        name: what `--task` takes, for example "squad".
        help: one line about the files it reads.
        read: reads a file or folder; `labelled` is False for prediction, where labels may lack.
        make_task: builds the task from the training records and the options of `[task]` in the
            settings; raises SettingsError for an unknown or wrong option.
        takes_columns: it reads tables whose columns can be named.
    """

    name: str
    help: str
    read: Callable[[Path, ReadOptions, bool], RecordSource[Any]]
    make_task: Callable[[Sequence[Record], Mapping[str, Any]], RecordTask]
    takes_columns: bool = False


RECORD_KINDS: Final[Registry[RecordKind]] = Registry("task")
"""Kinds by the name that `--task` takes."""
