"""What a task is: it reads labels, encodes examples, decodes logits and scores them.

A task names its head by a word and works on numpy arrays only, so that training and the torch-free
runtime share one decoder. It is stored as `task.json` in the model folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, cast

from litebert.errors import CheckpointError
from litebert.files import check_file, read_json
from litebert.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from jaxtyping import Float, Num

    from litebert.data.batch import EncodedExample
    from litebert.data.examples import Example
    from litebert.text.tokenizer import Tokenizer

__all__ = ["FORMAT_VERSION", "TASKS", "TASK_FILE", "Prediction", "Task", "load_task", "parse_task"]

TASK_FILE: Final = "task.json"
FORMAT_VERSION: Final = 1
MAX_TASK_BYTES: Final = 16_000_000
"""Largest task.json that is read; a hundred thousand long label names fit."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer for one example."""

    label: str | float | tuple[str, ...]
    """A class name, a number (regression) or every label over the threshold (multi-label)."""
    score: float
    """Probability of the answer in [0, 1]; for regression the number itself.

    Multi-label: the least certain of the yes/no decisions that make up the answer.
    """
    scores: dict[str, float] = field(default_factory=dict)
    """Probability of every label, best first; empty for regression."""

    def to_json(self) -> dict[str, Any]:
        """Return the published output columns `prediction`, `score`, `scores`."""
        label = list(self.label) if isinstance(self.label, tuple) else self.label
        return {"prediction": label, "score": self.score, "scores": self.scores}


class Task(Protocol):
    """One downstream task with its label map and calibration; immutable."""

    @property
    def name(self) -> str:
        """Name in the `TASKS` registry."""
        ...

    @property
    def head(self) -> str:
        """Word for the model head that produces the logits, for example "sequence"."""
        ...

    @property
    def problem_type(self) -> str:
        """Loss family, in the published spelling of `config.json`."""
        ...

    @property
    def metric(self) -> str:
        """Name of the main score, a key of what `score` returns."""
        ...

    def config_labels(self) -> dict[int, str]:
        """Return `id2label` of `config.json`; its length is the number of logits C."""
        ...

    def encode(
        self,
        example: Example,
        tokenizer: Tokenizer,
        max_length: int | None = None,
        *,
        index: int = 0,
    ) -> EncodedExample:
        """Turn text and label into ids; `index` is the position of the example in its source."""
        ...

    def decode(self, logits: Float[np.ndarray, "N C"]) -> list[Prediction]:
        """Turn logits into answers."""
        ...

    def score(
        self, logits: Float[np.ndarray, "N C"], labels: Num[np.ndarray, "*S"]
    ) -> dict[str, float]:
        """Score logits against labels in the form that `encode` gives them."""
        ...

    def to_json(self) -> str:
        """Return the text of `task.json`."""
        ...

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, path: Path | None = None) -> Self:
        """Build the task from the parsed `task.json`."""
        ...


TASKS: Final[Registry[type[Task]]] = Registry("task")


def load_task(folder: Path) -> Task:
    """Read `task.json` of a model folder.

    Raises:
        CheckpointError: file missing, no regular file, a link out of the folder, too large, not
            JSON, of a newer format or an unknown task.
    """
    path = folder / TASK_FILE
    if check_file(path) is None:
        raise CheckpointError(
            f"there is no {TASK_FILE}; the folder holds a model without a task: train one with "
            "`litebert train`, or point to the folder that a training run saved",
            path=folder,
        )
    return _make_task(read_json(path, max_bytes=MAX_TASK_BYTES), path)


def parse_task(text: str, *, path: Path | None = None) -> Task:
    """Build a task from the text of `task.json`.

    Raises:
        CheckpointError: not JSON, no object, of a newer format, an unknown task, wrong values.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"not valid JSON: {error}", path=path) from error
    if not isinstance(values, dict):
        raise CheckpointError(
            f"expected a JSON object, got {type(values).__name__}; save the model again", path=path
        )
    return _make_task(cast("dict[str, Any]", values), path)


def _make_task(table: dict[str, Any], path: Path | None) -> Task:
    version = table.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise CheckpointError(
            f"format_version is {version!r}, expected 1..{FORMAT_VERSION}; save the model again",
            path=path,
        )
    if version > FORMAT_VERSION:
        raise CheckpointError(
            f"format_version is {version}, this litebert reads up to {FORMAT_VERSION}; "
            "update litebert",
            path=path,
        )
    name = table.get("task")
    # Only registered names: a folder from elsewhere must not be able to name code to import.
    if not isinstance(name, str) or name not in TASKS:
        raise CheckpointError(
            f"task {name!r:.80} is not known; known: {', '.join(TASKS)}", path=path
        )
    rest = {key: value for key, value in table.items() if key not in ("format_version", "task")}
    return TASKS.get(name).from_json(rest, path=path)
