"""What a teacher says about a batch: the numbers that a student learns from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["TeacherTargets", "Teaching"]


@dataclass(frozen=True, slots=True)
class TeacherTargets:
    """Outputs of a teacher for the sequences of a batch, in their order; None where not asked for.

    D is the teacher's width, which need not be the student's.
    """

    hidden: Float[Tensor, "T D"] | None = None
    """Last hidden states."""
    pooled: Float[Tensor, "N D"] | None = None
    """Vectors of the sequences."""
    logits: Float[Tensor, "N C"] | None = None
    """Logits of a classifier."""
    relations: Float[Tensor, "T F"] | None = None
    """Query, key and value of one depth, side by side: F = 3 D."""


class Teaching(Protocol):
    """Where targets come from."""

    def targets(self, example_index: NDArray[np.int64]) -> TeacherTargets:
        """Return the targets of examples by their numbers, in that order, in float32."""
        ...
