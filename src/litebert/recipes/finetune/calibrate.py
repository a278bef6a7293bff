"""Calibration error after temperature scaling, measured on answers that did not choose the temperature."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Num

    from litebert.tasks.classification import SequenceClassification

__all__ = ["cross_fitted_ece"]


def cross_fitted_ece(
    task: SequenceClassification, logits: Float[np.ndarray, "N C"], labels: Num[np.ndarray, "*S"]
) -> float | None:
    """Return the expected calibration error in [0, 1], each half scored with the other's temperature.

    None for fewer than 4 examples, which cannot be halved sensibly.
    """
    if len(logits) < 4:
        return None
    order = np.random.default_rng(0).permutation(len(logits))
    halves = order[::2], order[1::2]
    errors = [
        len(scored)
        * task.calibrated(logits[fitted], labels[fitted]).score(logits[scored], labels[scored])[
            "ece"
        ]
        for fitted, scored in (halves, halves[::-1])
    ]
    return sum(errors) / len(logits)
