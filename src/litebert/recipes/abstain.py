"""Answers that are not certain enough are withheld: what that does to a score, and who may do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from litebert.errors import SettingsError
from litebert.tasks.abstention import answered, threshold_for

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from litebert.tasks.slices import SliceScore

__all__ = ["Withheld", "extra_values", "refuse_numbers", "withhold"]


@dataclass(frozen=True, slots=True)
class Withheld:
    """What remains when less certain answers are withheld."""

    threshold: float | None
    """Confidence from which an answer is given; None if no threshold reaches the wanted accuracy."""
    wanted: float | None
    """The accuracy that chose the threshold, if one was wanted."""
    coverage: float
    accuracy: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `--json`."""
        return {
            "threshold": self.threshold,
            "wanted_accuracy": self.wanted,
            "coverage": self.coverage,
            "accuracy": self.accuracy,
        }

    def line(self) -> str:
        """Return the sentence for a person."""
        if self.threshold is None:
            return f"abstain   no threshold makes {self.wanted:.1%} of the answers right"
        chosen = "" if self.wanted is None else f", chosen here for {self.wanted:.1%}"
        right = f", {self.accuracy:.1%} of them right" if self.coverage else ""
        return (
            f"abstain   below {self.threshold:.4g}{chosen}: {self.coverage:.1%} are answered{right}"
        )


def withhold(
    confidence: Sequence[float] | Float[np.ndarray, " N"],
    correct: Sequence[bool] | Bool[np.ndarray, " N"],
    *,
    threshold: float | None,
    wanted: float | None,
) -> Withheld | None:
    """Return what remains above a threshold, or above the one that reaches the wanted accuracy.

    Args:
        confidence: of each answer.
        correct: whether it is right.
        threshold: told; None: chosen by `wanted`.
        wanted: accuracy of the answers that are given.

    Returns:
        None when neither is told.

    Raises:
        SettingsError: both are told, or numbers outside of (0, 1].
    """
    if threshold is None and wanted is None:
        return None
    if threshold is not None and wanted is not None:
        raise SettingsError(
            "--abstain-below and --target-accuracy both choose a threshold; give one"
        )
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, bool)
    if wanted is not None:
        threshold = threshold_for(sure, right, wanted)
        if threshold is None:
            return Withheld(None, wanted, 0.0, 1.0)
    elif threshold is None or not 0.0 < threshold <= 1.0:
        raise SettingsError(f"--abstain-below is {threshold}; give a number above 0 and at most 1")
    coverage, accuracy = answered(sure, right, threshold or 0.0)
    return Withheld(threshold, wanted, coverage, accuracy)


def extra_values(slices: Sequence[SliceScore] | None, withheld: Withheld | None) -> dict[str, Any]:
    """Return what was asked for besides the scores, as plain values for `--json`."""
    values: dict[str, Any] = {}
    if slices is not None:
        values["slices"] = [asdict(item) for item in slices]
    if withheld is not None:
        values["abstention"] = withheld.to_dict()
    return values


def refuse_numbers(task: Any) -> None:
    """Refuse tasks whose answers have no probability.

    Raises:
        SettingsError: regression, and vectors.
    """
    if getattr(task, "kind", None) == "regression" or task.head == "embedding":
        raise SettingsError(
            "this model answers with numbers, which have no probability; there is nothing to abstain by"
        )
