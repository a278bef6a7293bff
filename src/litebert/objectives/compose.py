"""All objectives of a run in one settings table, and the objectives themselves. No torch."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from litebert.objectives.base import OBJECTIVES, Objective
from litebert.objectives.mlm import MlmSettings
from litebert.objectives.order import OrderSettings, SentencePair
from litebert.objectives.rtd import RtdSettings
from litebert.settings import Settings

__all__ = ["ObjectiveSettings", "make_objectives"]


class ObjectiveSettings(Settings):
    """What is learnt. A weight of 0 turns an objective off."""

    mlm: MlmSettings = MlmSettings()
    order: OrderSettings = OrderSettings()
    """Also just its kind: "sop", "nsp" or "none"."""
    rtd: RtdSettings | None = Field(default=None)
    """Given: the model is trained as a discriminator (ELECTRA), and `mlm` trains the generator."""

    @field_validator("order", mode="before")
    @classmethod
    def _from_kind(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.has_mlm and not self.has_order:
            raise ValueError("there is nothing to learn: mlm.weight is 0 and there is no order")
        if self.rtd is not None and not self.has_mlm:
            raise ValueError("rtd needs a generator that learns: set mlm.weight above 0")
        return self

    @property
    def has_mlm(self) -> bool:
        """Whether tokens are masked and predicted."""
        return self.mlm.weight > 0

    @property
    def has_order(self) -> bool:
        """Whether something is asked about the two segments."""
        return self.order.kind != "none" and self.order.weight > 0

    @property
    def has_rtd(self) -> bool:
        """Whether a discriminator finds replaced tokens."""
        return self.rtd is not None and self.rtd.weight > 0

    @property
    def weights(self) -> dict[str, float]:
        """Loss term -> weight, of the terms that there are."""
        found: dict[str, float] = {}
        if self.has_mlm:
            found["mlm"] = self.mlm.weight
        if self.rtd is not None and self.has_rtd:
            found["rtd"] = self.rtd.weight
        if self.has_order:
            found[self.order.kind] = self.order.weight
        return found

    @property
    def head(self) -> str:
        """Head word of the model that is trained (without `rtd`, which has a model of its own)."""
        if self.has_mlm:
            return "pretraining" if self.has_order else "mlm"
        return "sentence_order"


def make_objectives(settings: ObjectiveSettings) -> tuple[Objective, ...]:
    """Return the objectives in the order they work on an example."""
    kind = settings.order.kind
    pair = SentencePair(settings.order) if kind == "none" else OBJECTIVES.get(kind)(settings.order)
    found: list[Objective] = [pair]
    if settings.has_mlm:
        found.append(OBJECTIVES.get("mlm")(settings.mlm))
    if settings.rtd is not None and settings.has_rtd:
        found.append(OBJECTIVES.get("rtd")(settings.rtd))
    return tuple(found)
