"""Weights of 8 bits that cannot saturate where two products are added in 16 bits.

CPUs without VNNI multiply a row of uint8 activations with a row of int8 weights two columns at a time
and add both products in 16 bits, cut off at 32,767. Weights of 7 bits avoid that and cost half of the
levels. It is enough that no two neighbours (columns 2j and 2j + 1) of one sign add up to more than 128:
255 * 128 = 32,640. Few pairs do, and only those are moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.checkpoint.int8 import INT8_LIMIT, QuantizedMatrix, quantize_matrix

if TYPE_CHECKING:
    from jaxtyping import Float, Int8

__all__ = ["PAIR_LIMIT", "can_saturate", "quantize_in_pairs"]

PAIR_LIMIT: Final = 128
"""Largest sum of two neighbours of one sign; 255 * 128 is below 2 ** 15."""
LIMITS: Final = (127, 118, 109, 100, 92, 84, 74, 64)
"""Largest magnitudes that are tried for each row: a smaller one is coarser and moves fewer pairs, 64 none."""
CHUNK: Final = 1 << 22
"""Numbers worked on at a time."""


def quantize_in_pairs(weight: Float[np.ndarray, "R C"]) -> QuantizedMatrix:
    """Round a matrix to integers that never saturate; each row takes the scale that errs least.

    Symmetric, one scale for each row, rounding as `quantize_matrix`.

    Args:
        weight: floating point, finite; a row is an output channel of a linear layer, [out, in].

    Raises:
        CheckpointError: as `quantize_matrix`.
    """
    best = quantize_matrix(weight, limit=INT8_LIMIT)  # checks the weight
    rows, columns = weight.shape
    values, scales = np.empty_like(best.values), np.empty_like(best.scales)
    step = max(1, CHUNK // columns)
    for start in range(0, rows, step):
        part = slice(start, start + step)
        values[part], scales[part] = _fit(weight[part])
    return QuantizedMatrix(values, scales, columns, INT8_LIMIT)


def can_saturate(values: Int8[np.ndarray, "R C"]) -> bool:
    """Return whether some activations could overflow 16 bits in the sum of two products."""
    wide = _even(values.astype(np.int16))
    first, second = wide[:, 0::2], wide[:, 1::2]
    high = np.maximum(first, 0) + np.maximum(second, 0)
    low = np.minimum(first, 0) + np.minimum(second, 0)
    return bool((high > PAIR_LIMIT).any() or (low < -PAIR_LIMIT).any())


def _fit(weight: Float[np.ndarray, "R C"]) -> tuple[np.ndarray, np.ndarray]:
    """Integers and scales of some rows."""
    kept = quantize_matrix(weight, limit=LIMITS[0])
    values, scales = _moved(kept.values), kept.scales
    error = _error(weight, values, scales)
    for limit in LIMITS[1:]:
        tried = quantize_matrix(weight, limit=limit)
        moved = _moved(tried.values)
        new_error = _error(weight, moved, tried.scales)
        better = new_error < error
        values[better], scales[better] = moved[better], tried.scales[better]
        error = np.minimum(error, new_error)
    return values, scales


def _error(weight: np.ndarray, values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.square(values * scales - weight, dtype=np.float32).sum(axis=1)


def _moved(values: Int8[np.ndarray, "R C"]) -> Int8[np.ndarray, "R C"]:
    """Move pairs that are too large towards zero, both alike."""
    wide = _even(values.astype(np.int16))
    first, second = wide[:, 0::2], wide[:, 1::2]
    over = np.abs(first + second) - PAIR_LIMIT
    rows, pairs = np.nonzero((over > 0) & (np.sign(first) == np.sign(second)))
    sign, much = np.sign(first[rows, pairs]), over[rows, pairs]
    # Both are at most 127 and their sum at least 129, so each is at least 2, and over 126 never.
    half = much // 2
    wide[rows, 2 * pairs] -= sign * (much - half)
    wide[rows, 2 * pairs + 1] -= sign * half
    return wide[:, : values.shape[1]].astype(np.int8)


def _even(values: np.ndarray) -> np.ndarray:
    return np.pad(values, ((0, 0), (0, values.shape[1] % 2)))
