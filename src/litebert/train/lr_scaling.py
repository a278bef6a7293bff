"""How the peak learning rate follows the batch size."""

from __future__ import annotations

import math

from litebert.train.settings import TrainSettings


def peak_learning_rate(settings: TrainSettings, batch_size: int | None = None) -> float:
    """Return the peak rate for a batch size.

    `learning_rate` belongs to `lr_reference_batch_size`. "sqrt": a batch k times as large makes
    the noise of the mean gradient sqrt(k) times smaller, and Adam and LAMB divide by that very
    size, so the rate grows with sqrt(k). "linear" is for updates that are proportional to the
    gradient, such as SGD. "none": the rate as it is.

    Args:
        settings: of the run.
        batch_size: examples per step; None: those of the settings. A run with a batch ramp may
            give the size of the step.

    Source: You et al. 2020, section 4.3 (LAMB, square root); Malladi et al. 2022, "On the SDEs and
        Scaling Rules for Adaptive Gradient Algorithms"; Goyal et al. 2017 (SGD, linear).
    """
    size = settings.batch_size if batch_size is None else batch_size
    times = size / settings.lr_reference_batch_size
    factor = {"none": 1.0, "sqrt": math.sqrt(times), "linear": times}[settings.lr_scaling]
    return settings.learning_rate * factor
