"""The integers of each weight of a model: which rule makes them, for files and for computing alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import Tensor

from litebert.checkpoint.int8 import INT4_LIMIT, INT8_LIMIT, QuantizedMatrix, quantize_matrix
from litebert.checkpoint.int8_pairs import can_saturate, quantize_in_pairs
from litebert.checkpoint.quantized import is_table
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.quantization import Quantization
from litebert.model.rounding import use_rounding

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["attach_rounding", "quantize_weight"]

_SAMPLE: Final = 16
"""Columns on which most candidates for a scale fail."""
_EXACT: Final = 2e-4
"""Largest distance from a whole number that rounding of float32 leaves at 127."""


def quantize_weight(
    name: str, weight: Float[np.ndarray, "R C"], quantization: Quantization
) -> QuantizedMatrix:
    """Return the integers of a weight.

    A weight that is on such a grid already, as one that was loaded is, keeps its integers, so that
    nothing is rounded twice.

    Args:
        name: of the layer, for example `encoder.ffns.0.up`; tables have rules of their own.
        weight: its numbers.
        quantization: the rules.

    Raises:
        CheckpointError: numbers that are not finite.
    """
    if is_table(f"{name}.weight"):
        if quantization.embeddings == "int4" and name.endswith("embeddings.token"):
            return quantize_matrix(weight, limit=INT4_LIMIT, group=quantization.embedding_group)
        return quantize_matrix(weight, limit=INT8_LIMIT)
    if quantization.weights != "pairs":
        return quantize_matrix(weight, limit=quantization.weight_limit)
    return _on_grid(weight) or quantize_in_pairs(weight)


def attach_rounding(model: AlbertModel | AlbertWithHead) -> None:
    """Let a model compute as its quantized form does; nothing without `litebert.quantization`."""
    use_rounding(model, _round)


def _round(name: str, quantization: Quantization, weight: Tensor) -> Tensor:
    array = weight.detach().float().cpu().numpy()
    rounded = torch.from_numpy(quantize_weight(name, array, quantization).dequantize())
    return rounded.to(device=weight.device, dtype=weight.dtype)


def _on_grid(weight: np.ndarray) -> QuantizedMatrix | None:
    """Return the integers of a matrix all of whose rows are integers times a scale, else None.

    The scale of such a row is its largest magnitude over a whole number up to 127.
    """
    largest = np.abs(weight).max(axis=1, keepdims=True).astype(np.float64)  # [R, 1]
    if not bool(np.all(np.isfinite(largest))):
        return None
    largest[largest == 0.0] = INT8_LIMIT  # a row of zeros is on every grid; its scale is then 1
    parts = np.arange(1, INT8_LIMIT + 1)
    sample = weight[:, :_SAMPLE, None].astype(np.float64) / (largest[:, :, None] / parts)
    fits = (np.abs(sample - np.rint(sample)) < _EXACT).all(axis=1)  # [R, 127]
    scales = np.zeros_like(largest)
    for row, candidates in enumerate(fits):
        for part in parts[candidates]:
            exact = weight[row].astype(np.float64) / (largest[row] / part)
            if (np.abs(exact - np.rint(exact)) < _EXACT).all():
                scales[row] = largest[row] / part
                break
        else:
            return None
    values = np.rint(weight / scales).astype(np.int8)
    if can_saturate(values):
        return None
    return QuantizedMatrix(values, scales.astype(np.float32), weight.shape[1], INT8_LIMIT)
