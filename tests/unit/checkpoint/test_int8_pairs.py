"""Integers whose products cannot overflow 16 bits in pairs, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.checkpoint.int8 import QuantizedMatrix, quantize_matrix
from litebert.checkpoint.int8_pairs import can_saturate, quantize_in_pairs
from litebert.errors import CheckpointError


def overflows(values: np.ndarray) -> bool:
    """Slowly: the worst activations for each pair, added in 32 bits."""
    for row in values.astype(np.int64):
        for place in range(0, len(row), 2):
            pair = row[place : place + 2]
            if 255 * pair[pair > 0].sum() > 32767 or 255 * pair[pair < 0].sum() < -32768:
                return True
    return False


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 5), columns=st.integers(1, 9))
def test_no_activations_overflow(seed: int, rows: int, columns: int) -> None:
    generator = np.random.default_rng(seed)
    weight = generator.standard_t(2, (rows, columns)).astype(np.float32)
    found = quantize_in_pairs(weight)
    assert not overflows(found.values) and not can_saturate(found.values)
    assert np.abs(found.values.astype(int)).max() <= 127


@given(seed=st.integers(0, 10_000))
def test_what_can_saturate_is_what_overflows(seed: int) -> None:
    values = np.random.default_rng(seed).integers(-127, 128, (2, 3)).astype(np.int8)
    assert can_saturate(values) == overflows(values)


def test_rounding_errs_less_than_in_seven_bits() -> None:
    weight = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)

    def error(matrix: QuantizedMatrix) -> float:
        return float(np.square(matrix.dequantize() - weight).sum())

    pairs, seven = error(quantize_in_pairs(weight)), error(quantize_matrix(weight, limit=63))
    assert pairs < 0.8 * seven


def test_equal_neighbours_are_moved_alike() -> None:
    found = quantize_in_pairs(np.ones((1, 2), np.float32))
    assert abs(int(found.values[0, 0]) - int(found.values[0, 1])) <= 1
    np.testing.assert_allclose(found.dequantize(), 1.0, rtol=0.03)


def test_weights_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(CheckpointError, match="NaN"):
        quantize_in_pairs(np.array([[np.nan, 1.0]], np.float32))
