"""Integers and scales: rounding within half a scale, exact zeros, packing, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from litebert.checkpoint.int8 import (
    INT4_LIMIT,
    INT8_LIMIT,
    REDUCED_LIMIT,
    ActivationRange,
    pack_int4,
    quantize_matrix,
    spread,
    unpack_int4,
)
from litebert.errors import CheckpointError

MATRICES = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=9),
    elements=st.floats(-(2.0**100), 2.0**100, width=32),
)
LIMITS = st.sampled_from([INT8_LIMIT, REDUCED_LIMIT, INT4_LIMIT])


@given(MATRICES, LIMITS, st.sampled_from([None, 1, 2, 4, 32]))
def test_no_number_moves_by_more_than_half_a_scale(
    weight: np.ndarray, limit: int, group: int | None
) -> None:
    found = quantize_matrix(weight, limit=limit, group=group)
    wide = spread(found.scales, found.group, weight.shape[1]).astype(np.float64)
    exact = found.values.astype(np.float64) * wide
    slack = 1e-6 * np.abs(weight).astype(np.float64)  # the scale itself is rounded to float32
    assert (np.abs(exact - weight.astype(np.float64)) <= 0.5 * wide + slack).all()
    assert int(np.abs(found.values.astype(int)).max()) <= limit
    assert (found.values[weight == 0] == 0).all()
    assert found.dequantize().dtype == np.float32
    assert (found.scales > 0).all() and np.isfinite(found.scales).all()


@given(st.floats(-(2.0**60), 2.0**60, width=32).filter(lambda x: abs(x) > 1e-30), LIMITS)
def test_constant_rows_come_back(value: float, limit: int) -> None:
    found = quantize_matrix(np.full((2, 5), value, np.float32), limit=limit)
    assert np.abs(found.values).tolist() == [[limit] * 5] * 2
    np.testing.assert_allclose(found.dequantize(), np.float32(value), rtol=2e-7)


@given(MATRICES, LIMITS)
def test_what_is_rounded_already_is_not_rounded_again(weight: np.ndarray, limit: int) -> None:
    once = quantize_matrix(weight, limit=limit)
    again = quantize_matrix(once.dequantize(), limit=limit)
    assert (again.values == once.values).all() or np.abs(weight).max() < 1e-30


def test_rows_of_zeros_and_tiny_numbers() -> None:
    found = quantize_matrix(np.asarray([[0, 0], [1e-45, 0], [1e-39, -1e-39]], np.float32))
    assert found.row_scales[0] == 1.0
    assert not found.dequantize()[0].any()
    assert np.isfinite(found.dequantize()).all()


@pytest.mark.parametrize(
    ("weight", "options", "words"),
    [
        (np.asarray([[1.0, np.nan]], np.float32), {}, "NaN, infinite"),
        (np.asarray([[1.0, np.inf]], np.float32), {}, "NaN, infinite"),
        (np.asarray([[1.0, 1e300]]), {}, "beyond float32"),
        (np.zeros((2, 0), np.float32), {}, "nothing to quantize"),
        (np.zeros((0, 2), np.float32), {}, "nothing to quantize"),
        (np.zeros(3, np.float32), {}, "only matrices"),
        (np.zeros((2, 2), np.int8), {}, "only matrices"),
        (np.zeros((2, 2), np.float32), {"limit": 128}, "allowed are 1 to 127"),
        (np.zeros((2, 2), np.float32), {"limit": 0}, "allowed are 1 to 127"),
        (np.zeros((2, 2), np.float32), {"group": 0}, "1 and more columns"),
    ],
)
def test_what_is_no_weight_is_refused(
    weight: np.ndarray, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(CheckpointError, match=words):
        quantize_matrix(weight, **options)


def test_groups_are_not_taken_for_rows() -> None:
    found = quantize_matrix(np.ones((2, 8), np.float32), group=4)
    with pytest.raises(CheckpointError, match="2 scales a row"):
        _ = found.row_scales


def test_reduced_range_cannot_saturate_sixteen_bits() -> None:
    assert 2 * 255 * REDUCED_LIMIT <= 32_767 < 2 * 255 * INT8_LIMIT


RANGES = st.tuples(*[st.floats(-(2.0**20), 2.0**20, width=32)] * 2).map(sorted)


@given(RANGES, st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_activations_inside_the_range_move_by_half_a_step(
    ends: list[float], places: list[float]
) -> None:
    low, high = min(ends[0], 0.0), max(ends[1], 0.0)
    found = ActivationRange.of(*ends)
    numbers = np.asarray([low + (high - low) * p for p in places], np.float32)
    levels = found.quantize(numbers)
    assert levels.dtype == np.uint8
    error = np.abs(found.dequantize(levels).astype(np.float64) - numbers)
    # The zero point is rounded as well, so an end of the range may lie half a step outside.
    assert (error <= found.scale * 1.001 + 1e-6 * np.abs(numbers)).all()
    assert found.dequantize(found.quantize(np.zeros(1, np.float32)))[0] == 0.0
    assert 0 <= found.zero_point <= 255


def test_activations_as_onnx_defines_them() -> None:
    # Example of the operator's documentation: x = [0, 2, -3, -2.5, 1.34, 0.5].
    found = ActivationRange.of(-3.0, 2.0)
    assert found.scale == pytest.approx(5.0 / 255)
    assert found.zero_point == 153
    x = np.asarray([0, 2, -3, -2.5, 1.34, 0.5], np.float32)
    assert found.quantize(x).tolist() == [153, 255, 0, 26, 221, 179]
    assert ActivationRange.of(0.0, 0.0) == ActivationRange(1.0, 0)


@pytest.mark.parametrize(
    "ends", [(1.0, 0.0), (float("nan"), 1.0), (0.0, float("inf")), (-1e300, 0.0)]
)
def test_ranges_that_are_none_are_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(CheckpointError, match="finite numbers in order"):
        ActivationRange.of(*ends)


@given(hnp.arrays(np.int8, hnp.array_shapes(min_dims=2, max_dims=2), elements=st.integers(-8, 7)))
def test_packing_of_four_bits_comes_back(values: np.ndarray) -> None:
    packed = pack_int4(values)
    assert packed.shape == (values.shape[0], (values.shape[1] + 1) // 2)
    assert (unpack_int4(packed, values.shape[1]) == values).all()


def test_the_first_of_two_is_in_the_low_half() -> None:
    assert pack_int4(np.asarray([[1, -1, 7]], np.int8)).tolist() == [[0xF1, 0x07]]


def test_what_does_not_fit_four_bits_is_refused() -> None:
    with pytest.raises(CheckpointError, match="do not fit into 4 bits"):
        pack_int4(np.asarray([[8]], np.int8))
    with pytest.raises(CheckpointError, match="need 3 bytes"):
        unpack_int4(np.zeros((1, 2), np.uint8), 5)
