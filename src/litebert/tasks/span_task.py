"""What all tasks of answering from a passage share: lengths, windows, and the task's file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

from pydantic import Field, model_validator

from litebert.errors import DataError
from litebert.settings import build_settings
from litebert.tasks.span_decode import DecodeOptions, SpanAnswer, best_spans, windows_of
from litebert.tasks.span_windows import Asked, WindowSizes, make_windows
from litebert.tasks.stored import StoredTask

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float
    from numpy.typing import NDArray

    from litebert.tasks.records import Feature
    from litebert.tasks.span_windows import Window
    from litebert.text.tokenizer import Tokenizer

__all__ = ["Found", "PassageTask", "build_task"]

T = TypeVar("T", bound="PassageTask")
Found = tuple[list[tuple["Window", "NDArray[np.float64]"]], list[SpanAnswer]]
"""The windows of a question with their outputs, and its possible answers, best first."""

_SPECIAL: Final = 3
_LEAST_PASSAGE: Final = 1
MAX_SHOWN: Final = 300
"""Characters of a passage that `show` repeats."""


class PassageTask(StoredTask):
    """Questions that are answered from a passage."""

    task_name: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    is_joint: ClassVar[bool] = True

    metric: str = "f1"
    """Main score."""
    max_length: int = Field(default=384, ge=8, le=100_000)
    """Tokens of one window, special ones included."""
    max_query_length: int = Field(default=64, ge=1, le=100_000)
    """Tokens of the question that are kept."""
    doc_stride: int = Field(default=128, ge=1, le=100_000)
    """Tokens by which a window of a long passage starts after the one before."""
    max_answer_length: int = Field(default=30, ge=1, le=10_000)
    """Tokens of the longest answer."""
    n_best: int = Field(default=20, ge=1, le=1_000)
    """Possible answers that are kept for each question."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.metric not in self.metrics:
            raise ValueError(f"metric: {self.metric!r} is none of {', '.join(self.metrics)}")
        if self.max_query_length + _SPECIAL + _LEAST_PASSAGE > self.max_length:
            raise ValueError(
                f"max_query_length: {self.max_query_length} leaves no room for the passage in windows of "
                f"{self.max_length} tokens; allowed: up to {self.max_length - _SPECIAL - _LEAST_PASSAGE}"
            )
        return self

    @property
    def name(self) -> str:
        """Name in the `TASKS` registry."""
        return self.task_name

    @property
    def head(self) -> str:
        """Word for the model head."""
        return "span_joint" if self.is_joint else "span"

    @property
    def loss(self) -> str:
        """Word for what is minimised."""
        return "labels"

    @property
    def problem_type(self) -> str | None:
        """Spans have one loss only."""
        return None

    @abstractmethod
    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`."""

    @abstractmethod
    def asked(self, record: Any, *, labelled: bool) -> Asked | None:
        """Return what the windows of a record are made of; None if it cannot be learnt from."""

    def features(
        self, records: Sequence[Any], tokenizer: Tokenizer, *, labelled: bool
    ) -> list[Feature]:
        """Cut records into windows; with `labelled`, what cannot be learnt from is left out."""
        sizes = WindowSizes(self.max_length, self.max_query_length, self.doc_stride)
        asked = [self.asked(record, labelled=labelled) for record in records]
        return make_windows(asked, tokenizer, sizes, labelled=labelled)

    def found(
        self,
        records: Sequence[Any],
        features: Sequence[Feature],
        outputs: Sequence[Float[np.ndarray, "S C"]],
    ) -> list[Found]:
        """Return windows and possible answers of each record.

        Raises:
            DataError: outputs that do not fit the features or this task, or are not finite.
        """
        options = DecodeOptions(self.is_joint, self.n_best, self.max_answer_length)
        grouped = windows_of(len(records), features, outputs)
        return [(windows, best_spans(windows, options)) for windows in grouped]


def build_task(kind: type[T], options: Mapping[str, Any]) -> T:
    """Build a task from told options; the question gets at most half of a short window.

    Raises:
        SettingsError: an unknown option, or a wrong value.
    """
    values = dict(options)
    length = values.get("max_length", kind.model_fields["max_length"].default)
    if "max_query_length" not in values and isinstance(length, int) and length > _SPECIAL:
        usual = int(kind.model_fields["max_query_length"].default)
        values["max_query_length"] = max(1, min(usual, (length - _SPECIAL) // 2))
    return build_settings(kind, values)


def require_labels(records: Sequence[Any], count: int) -> None:
    """Refuse to score what has no known answer.

    Args:
        records: with `is_labelled`.
        count: answers that were given.

    Raises:
        DataError: no records, another number of answers, or records without a label.
    """
    if not records or len(records) != count:
        raise DataError(
            f"{count} answers for {len(records)} questions; scoring needs one each, and at least one"
        )
    missing = [record for record in records if not record.is_labelled]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(records)} questions have no known answer; score on labelled ones",
            path=missing[0].path,
            line=missing[0].line,
        )
