"""What a fine-tuning run came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from litebert.tasks.baselines import Baseline
    from litebert.train.state import FitResult

__all__ = ["Outcome", "SeedResult"]


@dataclass(frozen=True, slots=True, eq=False)
class SeedResult:
    """One seed: its answers to the evaluation examples, or why it has none.

    Attributes:
        seed: as given; a restart after a collapse trains with another one.
        logits: what the model gave for the evaluation examples: [N, C], or one array for each feature
            of a task over records; None if training failed.
        failure: why, else empty.
        result: how the loop ended.
        scores: uncalibrated scores by name.
    """

    seed: int
    logits: Any
    failure: str
    result: FitResult | None = None
    scores: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A run that finished, or was asked to stop.

    Attributes:
        plan: what was done, an `AnyPlan`.
        baselines: the weakest first.
        seeds: all seeds, in order.
        chosen: the seed whose model was kept; None for an interrupted run.
        task: the task with its temperature or thresholds.
        ece_before, ece_after: calibration error without and with the temperature; the second is
            cross-fitted, so that no example is scored with a temperature it took part in.
        test_scores: scores on the test set of the source, if it has a labelled one.
        signal: number of the signal that stopped the run, 0 for a request, None if it finished.
    """

    plan: Any
    baselines: tuple[Baseline, ...]
    seeds: tuple[SeedResult, ...]
    chosen: SeedResult | None = None
    task: Any = None
    ece_before: float | None = None
    ece_after: float | None = None
    test_scores: dict[str, float] = field(default_factory=dict[str, float])
    signal: int | None = None
    faults: tuple[str, ...] = ()
    """What looks like a collapse of the kept model, in sentences."""

    @property
    def is_interrupted(self) -> bool:
        """Whether the run can be resumed."""
        return self.chosen is None
