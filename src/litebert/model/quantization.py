"""What of a model is stored and multiplied as integers; one table of the configuration, no torch."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from litebert.settings import Settings

__all__ = ["SITES", "Quantization", "Site"]

Site = Literal["qkv", "output", "up", "down"]
SITES: Final[tuple[Site, ...]] = ("qkv", "output", "up", "down")
"""Where activations of a step enter projections, in the order of `encoder.activation_ranges`."""


class Quantization(Settings):
    """How a model is quantized. The integers themselves are defined in `checkpoint/int8.py`.

    Every linear layer and every embedding table is stored as integers with scales, each shared one
    once; biases, LayerNorms and the small parts of single depths stay float32.
    """

    weights: Literal["pairs", "int7", "int8"] = "pairs"
    """Integers of linear layers. "pairs": magnitudes up to 127, neighbours of one sign up to 128
    together; "int7": up to 63; neither overflows any CPU kernel. "int8": up to 127, which saturates on
    CPUs without VNNI."""
    embeddings: Literal["int8", "int4"] = "int8"
    """The token table: one int8 scale a row, or 4-bit integers in groups."""
    embedding_group: int = Field(default=32, ge=1, le=16_384)
    """Columns of the token table that share a scale, with int4."""
    activations: Literal["none", "dynamic", "static"] = "dynamic"
    """Inputs of the projections of a block as uint8: not at all, with the size of each row as it comes,
    or with ranges of each depth found on calibration texts."""
    centers: bool = True
    """Whether the mean of these inputs on calibration texts is taken off before they are rounded, and
    put into the bias: W x + b = W (x - c) + (b + W c). Trained encoders have channels that are large and
    almost constant, which would set the scale of all."""

    @property
    def has_centers(self) -> bool:
        """Whether blocks hold centers."""
        return self.centers and self.activations != "none"

    @property
    def weight_limit(self) -> int:
        """Largest magnitude of the integers of a linear layer."""
        return 63 if self.weights == "int7" else 127
