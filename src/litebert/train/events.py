"""What a run tells its caller while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from litebert.train.guard import Finding


@dataclass(frozen=True, slots=True)
class Started:
    """The run begins, or goes on from a saved state."""

    step: int
    total_steps: int
    threads: int
    device: str
    precision: str
    precision_reason: str
    gflops: dict[str, float]
    """Measured matrix speed by number type; empty when the precision was set."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step is done. Sent for every step: keep the answer short."""

    step: int
    total_steps: int
    epoch: float
    loss: float
    """Mean loss of the step; NaN for a step that was skipped because of it."""
    learning_rate: float
    grad_norm: float
    """L2 norm of the whole gradient before clipping."""
    tokens_per_second: float
    """Real tokens, since the last line of the log."""
    rss_bytes: int
    """Resident memory of the process."""
    eta_seconds: float
    """Expected time to the end, evaluations not counted."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluation is done."""

    step: int
    epoch: float
    score: float
    """Task metric, higher is better."""
    metrics: dict[str, float]
    is_best: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Saved:
    """A state was saved."""

    step: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Warned:
    """Something went wrong that the run survives."""

    step: int
    message: str


@dataclass(frozen=True, slots=True)
class Found:
    """The guard found something."""

    finding: Finding


@dataclass(frozen=True, slots=True)
class RolledBack:
    """Training went back to an earlier state with a lower learning rate."""

    step: int
    to_step: int
    lr_scale: float


@dataclass(frozen=True, slots=True)
class Restarted:
    """A collapsed run starts again from new weights."""

    attempt: int
    """Fresh starts so far."""
    seed: int
    learning_rate: float
    reason: str


Event = Started | Stepped | Evaluated | Saved | Warned | Found | RolledBack | Restarted
OnEvent = Callable[[Event], None]
