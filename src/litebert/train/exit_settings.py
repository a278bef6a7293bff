"""Settings of training for exits: answers from every depth; the defaults train the last one only."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from litebert.settings import Settings

__all__ = ["ExitSettings"]


class ExitSettings(Settings):
    """How a model learns to answer before its last depth."""

    heads: bool = False
    """Give each depth but the last a classifier of its own, and train all of them at every step. For
    labels of texts and of tokens."""
    random_depth: Literal["off", "uniform", "deep"] = "off"
    """End each pass after a depth drawn at random: all alike, or the deeper the more often (probability
    proportional to the depth). Costs less than a whole pass."""
    first_depth: int = Field(default=1, ge=1, le=512)
    """Shallowest depth that is trained to answer."""
    depth_weights: Literal["depth", "equal"] = "depth"
    """With heads: depth d counts d / sum of all d in the loss, or all count the same."""
    distill: float = Field(default=0.0, ge=0, le=1000)
    """With heads: weight of the divergence of each depth's answer from that of the deepest one."""

    @property
    def is_off(self) -> bool:
        """Whether only the last depth is trained to answer."""
        return not self.heads and self.random_depth == "off"
