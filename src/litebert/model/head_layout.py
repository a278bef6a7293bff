"""How the columns of query, key and value, side by side, are divided into attention heads."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HeadLayout"]


@dataclass(frozen=True, slots=True)
class HeadLayout:
    """How the columns of query, key and value are divided.

    Attributes:
        heads: query heads A.
        key_value_heads: key-value heads K; query head a uses key head `a * K // A`.
        size: size of a head D.
    """

    heads: int
    key_value_heads: int
    size: int

    @property
    def widths(self) -> tuple[int, int, int]:
        """Columns of query, key and value side by side."""
        narrow = self.key_value_heads * self.size
        return self.heads * self.size, narrow, narrow
