"""Integer arithmetic of weights and activations, in numpy: what a quantized number means.

One definition for the folder that is stored, the emulation in torch and the exported graph, so that
a weight is rounded once and every reader of it multiplies the same integers by the same scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.errors import CheckpointError

if TYPE_CHECKING:
    from jaxtyping import Float, Float32, Int8, Shaped, UInt8

__all__ = [
    "INT4_LIMIT",
    "INT8_LIMIT",
    "REDUCED_LIMIT",
    "ActivationRange",
    "QuantizedMatrix",
    "pack_int4",
    "quantize_matrix",
    "spread",
    "unpack_int4",
]

INT8_LIMIT: Final = 127
"""Largest magnitude of a weight in full range; -128 is left out, so that signs are alike."""
REDUCED_LIMIT: Final = 63
"""Largest magnitude in 7 bits. CPUs without VNNI add two products of uint8 and int8 in 16 bits, which
saturate above 32,767: 2 * 255 * 127 = 64,770 does, 2 * 255 * 63 = 32,130 cannot."""
INT4_LIMIT: Final = 7
"""Largest magnitude of a 4-bit weight."""

_SMALLEST: Final = float(np.finfo(np.float32).tiny)
"""Least scale; below it float32 loses digits, and a quotient could overflow."""
_LARGEST: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedMatrix:
    """Integers and their scales: row r, column c means `values[r, c] * scales[r, c // group]`.

    Attributes:
        values: [R, C], magnitudes up to `limit`. A row is an output channel of a linear layer stored
            [out, in], or one entry of an embedding table.
        scales: [R, G], > 0, float32; G = ceil(C / group), one where a row has one scale.
        group: columns that share a scale; C for one scale a row.
        limit: 127, 63 or 7.
    """

    values: Int8[np.ndarray, "R C"]
    scales: Float32[np.ndarray, "R G"]
    group: int
    limit: int

    @property
    def row_scales(self) -> Float32[np.ndarray, " R"]:
        """The scale of each row, where each has one.

        Raises:
            CheckpointError: rows with several groups.
        """
        if self.scales.shape[1] != 1:
            raise CheckpointError(
                f"{self.scales.shape[1]} scales a row, this reader takes one; quantize with group=None"
            )
        return self.scales[:, 0]

    def dequantize(self) -> Float32[np.ndarray, "R C"]:
        """Return the numbers that the integers stand for."""
        return self.values.astype(np.float32) * spread(
            self.scales, self.group, self.values.shape[1]
        )


def quantize_matrix(
    weight: Float[np.ndarray, "R C"], *, limit: int = REDUCED_LIMIT, group: int | None = None
) -> QuantizedMatrix:
    """Round a matrix to integers: symmetric, one scale for each row or group of columns.

    The scale is the largest magnitude over `limit`, so zero stays zero, the largest stays what it is,
    and no number moves by more than half a scale. Rounding is to the nearest, halves to even, as in
    ONNX `QuantizeLinear`.

    Args:
        weight: floating point, finite, within the range of float32.
        limit: largest magnitude of the integers, 1 to 127.
        group: columns that share a scale, >= 1; None: all of a row.

    Raises:
        CheckpointError: no matrix of floating point numbers, nothing in it, NaN, infinite or too
            large numbers, or a limit or group out of range.
    """
    if weight.ndim != 2 or not np.issubdtype(weight.dtype, np.floating):
        raise CheckpointError(
            f"only matrices of floating point numbers are quantized, got {weight.dtype} of shape "
            f"{weight.shape}"
        )
    if not 1 <= limit <= INT8_LIMIT:
        raise CheckpointError(
            f"the limit of int8 weights is {limit}, allowed are 1 to {INT8_LIMIT}"
        )
    rows, columns = weight.shape
    if not rows or not columns:
        raise CheckpointError(f"a matrix of shape {weight.shape} has nothing to quantize")
    width = columns if group is None else min(group, columns)
    if width < 1:
        raise CheckpointError(f"group is {group}, allowed are 1 and more columns for one scale")
    magnitudes = np.abs(weight)
    if not bool(np.all(magnitudes <= _LARGEST)):  # False for NaN as well
        raise CheckpointError(
            "a weight is NaN, infinite or beyond float32; such a model has diverged: take an "
            "earlier checkpoint"
        )
    starts = np.arange(0, columns, width)
    largest = np.maximum.reduceat(magnitudes, starts, axis=1).astype(np.float64)
    scales = np.maximum(largest / limit, _SMALLEST).astype(np.float32)
    wide = spread(scales, width, columns).astype(np.float64)
    values = np.clip(np.rint(weight.astype(np.float64) / wide), -limit, limit).astype(np.int8)
    scales[largest == 0.0] = 1.0  # nothing but zeros: any scale is right, this one is readable
    return QuantizedMatrix(values, scales, width, limit)


def spread(
    scales: Shaped[np.ndarray, "R G"], group: int, columns: int
) -> Shaped[np.ndarray, "R C"]:
    """Repeat each scale over the columns of its group."""
    if scales.shape[1] == 1:
        return np.broadcast_to(scales, (scales.shape[0], columns))
    return np.repeat(scales, group, axis=1)[:, :columns]


@dataclass(frozen=True, slots=True)
class ActivationRange:
    """How activations become uint8: `q = clip(rint(x / scale) + zero_point, 0, 255)`.

    The definition of ONNX `DynamicQuantizeLinear` and `QuantizeLinear`: the range always holds 0,
    which is met exactly. Dynamic: taken from the tensor itself at each use; static: from calibration
    texts. Source: ONNX operators, DynamicQuantizeLinear.

    Attributes:
        scale: step between neighbours, > 0.
        zero_point: integer that means 0, 0 to 255.
    """

    scale: float
    zero_point: int

    @classmethod
    def of(cls, low: float, high: float) -> ActivationRange:
        """Return the range from the least to the largest number seen.

        Raises:
            CheckpointError: not finite, or low above high.
        """
        if not (-_LARGEST <= low <= high <= _LARGEST):
            raise CheckpointError(
                f"activations go from {low} to {high}; a range needs two finite numbers in order"
            )
        low, high = min(low, 0.0), max(high, 0.0)
        scale = np.float32(max((high - low) / 255.0, _SMALLEST)) if high > low else np.float32(1.0)
        zero_point = int(np.clip(np.rint(np.float32(-low) / scale), 0, 255))
        return cls(float(scale), zero_point)

    def quantize(self, numbers: Float[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape"]:
        """Round finite numbers; those outside the range go to its ends."""
        levels = np.rint(numbers / np.float32(self.scale)) + self.zero_point
        return np.clip(levels, 0, 255).astype(np.uint8)

    def dequantize(self, levels: UInt8[np.ndarray, "*shape"]) -> Float32[np.ndarray, "*shape"]:
        """Return the numbers that levels stand for."""
        return (levels.astype(np.float32) - self.zero_point) * np.float32(self.scale)


def pack_int4(values: Int8[np.ndarray, "R C"]) -> UInt8[np.ndarray, "R H"]:
    """Put two 4-bit integers into each byte of a row, the first in the low half (as ONNX INT4 does).

    H = ceil(C / 2); the last half byte of an odd row is 0.

    Raises:
        CheckpointError: integers outside -8 to 7.
    """
    if values.size and not -8 <= int(values.min()) <= int(values.max()) <= 7:
        raise CheckpointError(
            f"integers from {values.min()} to {values.max()} do not fit into 4 bits, which hold -8 to 7"
        )
    even = np.pad(values, ((0, 0), (0, values.shape[1] % 2))).astype(np.uint8) & 0x0F
    return even[:, 0::2] | (even[:, 1::2] << 4)


def unpack_int4(packed: UInt8[np.ndarray, "R H"], columns: int) -> Int8[np.ndarray, "R C"]:
    """Undo `pack_int4` for rows of `columns` integers.

    Raises:
        CheckpointError: rows of another length.
    """
    if packed.ndim != 2 or packed.shape[1] != (columns + 1) // 2:
        raise CheckpointError(
            f"packed rows have shape {packed.shape}, {columns} 4-bit integers need "
            f"{(columns + 1) // 2} bytes each"
        )
    result: Any = np.empty((packed.shape[0], packed.shape[1] * 2), np.int8)
    result[:, 0::2] = packed & 0x0F
    result[:, 1::2] = packed >> 4
    result = (result ^ 8) - 8  # two's complement of 4 bits
    return result[:, :columns]
