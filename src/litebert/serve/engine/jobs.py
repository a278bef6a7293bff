"""A request inside the engine: what is computed for it, and how its answer is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from litebert.serve.engine.fair_queue import Waiting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from litebert.data.batch import EncodedExample

__all__ = ["Job", "Plan", "StepKey", "Want", "write_json"]

Want = Literal["head", "mean", "cls", "words"]
"""Outputs of the head, a vector by mean or first token, or words for the masks."""
Outputs = list["NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class StepKey:
    """What must be equal for sequences to be computed in one call."""

    want: Want
    depth: int | None
    exit_when: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What an operation needs.

    Attributes:
        want: which outputs.
        examples: sequences to compute; none: the answer is there without.
        finish: makes the body of the answer from one output for each example.
        tokens: of all examples.
    """

    want: Want
    examples: list[EncodedExample]
    finish: Callable[[Outputs], bytes]

    @property
    def tokens(self) -> int:
        """Tokens of all sequences."""
        return sum(len(example) for example in self.examples)


@dataclass(slots=True, eq=False)
class Job:
    """A plan that waits, or is computed in parts.

    Attributes:
        id: number that the server gave it.
        waiting: its place in the queue.
        plan: what to compute.
        outputs: by example; None: not computed yet.
        arrived: seconds of the monotonic clock.
        started: the same, of its first step; None before.
        compute: seconds of its share of the steps.
    """

    id: int
    waiting: Waiting[StepKey]
    plan: Plan
    outputs: list[NDArray[np.float32] | None]
    arrived: float = field(default_factory=monotonic)
    started: float | None = None
    compute: float = 0.0

    def is_done(self) -> bool:
        """Whether every example has its output."""
        return all(output is not None for output in self.outputs)


def write_json(value: Any) -> bytes:
    """Return JSON as UTF-8.

    Raises:
        ValueError: a number that JSON lacks.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", errors="backslashreplace")
