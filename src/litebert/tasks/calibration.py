"""How far confidence can be trusted, and the one-number repair of it.

A calibrated model that says 0.8 is right 8 times in 10. `expected_calibration_error` measures the
gap, `fit_temperature` closes most of it by dividing the logits by one positive number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Bool, Float, Int, Num

__all__ = [
    "NUM_BINS",
    "ReliabilityBin",
    "binary_confidence",
    "expected_calibration_error",
    "fit_binary_temperature",
    "fit_temperature",
    "reliability_bins",
    "sigmoid",
    "softmax",
    "top_confidence",
]

NUM_BINS: Final = 15
"""Equal-width confidence bins (Guo et al. 2017 use 15)."""

MIN_TEMPERATURE: Final = 0.05
MAX_TEMPERATURE: Final = 20.0
"""Search bounds. Separable logits want temperature 0, useless ones infinity; neither is of use."""

_NEWTON_STEPS: Final = 60
_TOLERANCE: Final = 1e-10


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """The answers whose confidence lies in (low, high]; the first bin includes its lower end."""

    low: float
    high: float
    count: int
    confidence: float
    """Mean confidence of these answers, in [0, 1]; 0.0 for an empty bin."""
    accuracy: float
    """Share of them that is right, in [0, 1]; 0.0 for an empty bin."""


def softmax(logits: Float[np.ndarray, "N C"]) -> Float[np.ndarray, "N C"]:
    """Probabilities over the last axis, in float64, safe for large logits."""
    shifted = np.asarray(logits, dtype=np.float64)
    shifted = shifted - shifted.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    return powers / powers.sum(axis=-1, keepdims=True)


def sigmoid(logits: Float[np.ndarray, "*S"]) -> Float[np.ndarray, "*S"]:
    """Independent probabilities, in float64, safe for large logits of either sign."""
    z = np.asarray(logits, dtype=np.float64)
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)


def top_confidence(
    probabilities: Float[np.ndarray, "N C"], labels: Int[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " N"], Bool[np.ndarray, " N"]]:
    """Return the confidence of each example's best class and whether that class is the true one."""
    return probabilities.max(axis=1), probabilities.argmax(axis=1) == np.asarray(labels)


def binary_confidence(
    probabilities: Float[np.ndarray, "N C"], targets: Num[np.ndarray, "N C"]
) -> tuple[Float[np.ndarray, " N*C"], Bool[np.ndarray, " N*C"]]:
    """Return the same pair for independent yes/no labels: each decision counts once.

    A probability p >= 0.5 is a "yes" with confidence p, else a "no" with confidence 1 - p.
    """
    p = np.asarray(probabilities, dtype=np.float64).reshape(-1)  # [N*C]
    truth = np.asarray(targets).reshape(-1) == 1  # [N*C]
    return np.maximum(p, 1.0 - p), (p >= 0.5) == truth


def reliability_bins(
    confidence: Float[np.ndarray, " N"],
    correct: Bool[np.ndarray, " N"],
    *,
    num_bins: int = NUM_BINS,
) -> tuple[ReliabilityBin, ...]:
    """Sort answers into equal-width confidence bins over [0, 1].

    Raises:
        DataError: different lengths, nothing to bin, or a confidence outside [0, 1].
    """
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, np.float64)
    if sure.ndim != 1 or sure.shape != right.shape or sure.size == 0:
        raise DataError(
            f"confidence has shape {sure.shape} and correctness {right.shape}; "
            "both must be the same non-empty list"
        )
    if not ((sure >= 0) & (sure <= 1 + 1e-9)).all():
        raise DataError("a confidence is outside [0, 1]; apply softmax or sigmoid to logits first")
    index = np.clip(np.ceil(sure * num_bins).astype(np.int64) - 1, 0, num_bins - 1)
    count = np.bincount(index, minlength=num_bins)
    safe = np.maximum(count, 1)
    mean_sure = np.bincount(index, weights=sure, minlength=num_bins) / safe
    mean_right = np.bincount(index, weights=right, minlength=num_bins) / safe
    return tuple(
        ReliabilityBin(
            low=i / num_bins,
            high=(i + 1) / num_bins,
            count=int(count[i]),
            confidence=float(mean_sure[i]),
            accuracy=float(mean_right[i]),
        )
        for i in range(num_bins)
    )


def expected_calibration_error(
    confidence: Float[np.ndarray, " N"],
    correct: Bool[np.ndarray, " N"],
    *,
    num_bins: int = NUM_BINS,
) -> float:
    """Mean gap between confidence and accuracy over bins, weighted by bin size, in [0, 1].

    Source: Naeini et al. 2015; Guo et al. 2017, equation 5.

    Raises:
        DataError: as `reliability_bins`.
    """
    bins = reliability_bins(confidence, correct, num_bins=num_bins)
    total = sum(item.count for item in bins)
    return sum(item.count * abs(item.accuracy - item.confidence) for item in bins) / total


def fit_temperature(logits: Float[np.ndarray, "N C"], labels: Int[np.ndarray, " N"]) -> float:
    """Return the T > 0 for which softmax(logits / T) has the least log-loss on the labels.

    The loss is convex in 1 / T, so a guarded Newton search finds the one minimum. The result is
    kept within 0.05..20. Dividing by T never changes which class wins.

    Source: Guo et al. 2017, section 4.2.

    Raises:
        DataError: nothing to fit, shapes that do not fit, or logits that are not finite.
    """
    z, y = np.asarray(logits, np.float64), np.asarray(labels)
    if z.ndim != 2 or y.shape != z.shape[:1] or z.size == 0:
        raise DataError(
            f"cannot fit a temperature to logits {z.shape} and labels {y.shape}; "
            "expected [N, C] and [N] with N >= 1"
        )
    _require_finite(z)
    if (z == z[:, :1]).all():
        return 1.0  # the loss is flat: no temperature is better than another
    chosen = z[np.arange(len(y)), y]

    def slopes(beta: float) -> tuple[float, float]:
        p = softmax(beta * z)
        mean = (p * z).sum(axis=1)
        variance = (p * (z - mean[:, None]) ** 2).sum(axis=1)
        return float((mean - chosen).mean()), float(variance.mean())

    return _minimise(slopes)


def fit_binary_temperature(
    logits: Float[np.ndarray, "N C"], targets: Num[np.ndarray, "N C"]
) -> float:
    """Return the T > 0 for which sigmoid(logits / T) has the least binary cross-entropy.

    Raises:
        DataError: nothing to fit, shapes that do not fit, or logits that are not finite.
    """
    z, y = np.asarray(logits, np.float64), np.asarray(targets, np.float64)
    if z.shape != y.shape or z.size == 0:
        raise DataError(
            f"cannot fit a temperature to logits {z.shape} and targets {y.shape}; "
            "both must have the same non-empty shape"
        )
    _require_finite(z)
    if not z.any():
        return 1.0  # the loss is flat: no temperature is better than another

    def slopes(beta: float) -> tuple[float, float]:
        p = sigmoid(beta * z)
        return float(((p - y) * z).mean()), float((p * (1 - p) * z * z).mean())

    return _minimise(slopes)


def _require_finite(logits: np.ndarray) -> None:
    if not np.isfinite(logits).all():
        raise DataError(
            "the logits hold NaN or infinity, so no temperature can be fitted; "
            "the model has diverged: train again with a lower learning rate"
        )


def _minimise(slopes: Callable[[float], tuple[float, float]]) -> float:
    """Find the T in bounds where the first slope over beta = 1 / T is zero.

    Bisection keeps a bracket; Newton steps are taken whenever they stay inside it.
    """
    low, high = 1.0 / MAX_TEMPERATURE, 1.0 / MIN_TEMPERATURE
    if slopes(low)[0] >= 0:
        return MAX_TEMPERATURE
    if slopes(high)[0] <= 0:
        return MIN_TEMPERATURE
    beta = 1.0
    for _ in range(_NEWTON_STEPS):
        first, second = slopes(beta)
        low, high = (low, beta) if first > 0 else (beta, high)
        step = beta - first / second if second > 0 else np.inf
        new = step if low < step < high else (low + high) / 2
        if abs(new - beta) <= _TOLERANCE * beta:
            break
        beta = new
    return float(1.0 / beta)
