"""What exits would give, worked out from the answers of all depths to the same sequences. No torch.

A pass in which sequences leave gives each of them the answer of the depth where it left, so that one
table of the answers of all depths tells what any rule gives, without running it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.errors import DataError
from litebert.tasks.exit_rules import CRITERIA, TOLERANCE, Criterion, ExitRule, ExitWatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jaxtyping import Float, Int

    from litebert.tasks.classification import SequenceClassification

__all__ = ["Setting", "Simulated", "settings_to_try", "simulate"]

CONFIDENCES: Final = (
    0.5,
    0.6,
    0.7,
    0.75,
    0.8,
    0.85,
    0.9,
    0.93,
    0.95,
    0.97,
    0.98,
    0.99,
    0.995,
    0.999,
)
ENTROPIES: Final = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TOLERANCES: Final = (0.02, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to stop.

    Attributes:
        rule: when a sequence leaves; None: only after `depth`.
        depth: depths at most, 1..L.
    """

    rule: ExitRule | None
    depth: int

    @property
    def name(self) -> str:
        """In words for tables: `depth 3`, or the rule."""
        return f"depth {self.depth}" if self.rule is None else str(self.rule)


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """What a setting gives.

    Attributes:
        logits: [N, C] the answer of each sequence.
        depths: [N] depths that it went through.
    """

    logits: Float[np.ndarray, "N C"]
    depths: Int[np.ndarray, " N"]

    def mean_depth(self, lengths: Int[np.ndarray, " N"]) -> float:
        """Return the depths that a token goes through on average."""
        return float((self.depths * lengths).sum() / max(1, lengths.sum()))


def simulate(
    table: Float[np.ndarray, "L N C"], setting: Setting, task: SequenceClassification
) -> Simulated:
    """Return what a setting gives.

    Args:
        table: answers of each depth to each sequence.
        setting: how to stop.
        task: what the answers mean.

    Raises:
        DataError: the table has fewer depths than the setting.
        SettingsError: a criterion that the task does not have.
    """
    if setting.depth > len(table):
        raise DataError(
            f"depth {setting.depth} of a table of {len(table)} depths; give at most that"
        )
    count = table.shape[1]
    logits, depths = table[setting.depth - 1].copy(), np.full(count, setting.depth)
    if setting.rule is None:
        return Simulated(logits, depths)
    watch, present = ExitWatch(setting.rule, task), np.arange(count)
    for depth in range(1, setting.depth):
        if not watch.needs(depth):
            continue
        leave = watch.leaving(depth, table[depth - 1, present])
        gone = present[leave]
        logits[gone], depths[gone] = table[depth - 1, gone], depth
        present = present[~leave]
        if not present.size:
            break
    return Simulated(logits, depths)


def settings_to_try(
    depths: int, task: SequenceClassification, criteria: Sequence[Criterion] = CRITERIA
) -> Iterator[Setting]:
    """Yield every depth without exits, the last one first, then every rule with all depths.

    Args:
        depths: L.
        task: decides which criteria there are.
        criteria: which of them to try.
    """
    for depth in range(depths, 0, -1):
        yield Setting(None, depth)
    is_number = task.kind == "regression"
    for criterion in criteria:
        if criterion == "patience":
            for tolerance in TOLERANCES if is_number else (TOLERANCE,):
                for patience in range(1, depths - 1):
                    yield Setting(ExitRule("patience", float(patience), tolerance), depths)
        elif not is_number:
            values = CONFIDENCES if criterion == "confidence" else ENTROPIES
            for first in range(1, max(2, depths // 2)):
                for value in values:
                    yield Setting(ExitRule(criterion, value, first_depth=first), depths)
