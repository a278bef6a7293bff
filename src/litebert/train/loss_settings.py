"""Settings of the loss on labels in fine-tuning; the defaults are the plain loss."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from litebert.settings import Settings

__all__ = ["LossSettings"]

Weight = Annotated[float, Field(gt=0, le=1e6)]


class LossSettings(Settings):
    """What is minimised besides, or instead of, the plain loss on the labels."""

    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Part of each target that is spread over all classes: less certain answers."""
    class_weights: Literal["none", "balanced", "inverse", "inverse_sqrt"] | dict[str, Weight] = (
        "none"
    )
    """How much an example of each class counts; or a table, label -> weight, 1 where none is given.
    "balanced": N / (C n), C the classes that occur: mean 1 over the examples. "inverse": the same ratios with
    mean 1 over the classes. "inverse_sqrt": by 1 / sqrt(n), mean 1 over the examples."""
    r_drop: float = Field(default=0.0, ge=0, le=1000)
    """Weight of the disagreement of two passes with different dropout (R-Drop); twice the time."""

    @property
    def is_plain(self) -> bool:
        """Whether this is the model's own loss."""
        return not (self.label_smoothing or self.r_drop) and self.class_weights == "none"
