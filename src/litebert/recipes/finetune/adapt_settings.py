"""Which weights a fine-tuning run trains, and what it adds to each depth of a shared block."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from litebert.model.options import Projection
from litebert.settings import Settings

__all__ = ["AdaptSettings"]

LORA_RANK: Final = 8
"""Rank of `method = "lora"` where none is told."""
ADAPTER_SIZE: Final = 16
"""Width of `method = "adapters"` where none is told."""


def _split(value: Any) -> Any:
    """`--set adapt.freeze=embeddings,ffn` without brackets and quotes."""
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_split), Field(max_length=64)]


class AdaptSettings(Settings):
    """What is trained; the default is everything, and nothing is added."""

    method: Literal["full", "lora", "adapters", "norms", "head"] = "full"
    """What is trained beside pooler and head. "full": everything; "lora", "adapters", "norms": what
    each depth has of its own, added where the model lacks it; "head": nothing."""
    freeze: Names = ()
    """Parts that are not trained: embeddings, block, attention, ffn, norms, relative, lora, adapters,
    depth_norms, depth_embeddings, pooler, head; or patterns such as `encoder.ffns.0.*`."""
    train: Names = ()
    """Parts or patterns that are trained although `method` leaves them as they are."""
    lora_rank: int = Field(default=0, ge=0, le=4096)
    """Rank of low-rank updates to add to each depth; 0: none, or 8 with method "lora"."""
    lora_alpha: float | None = Field(default=None, gt=0.0, le=1e6)
    """Updates are scaled by alpha / rank; None: alpha = rank."""
    lora_on: tuple[Projection, ...] | None = None
    """Projections that get updates; None: all but `gate`."""
    adapter_size: int = Field(default=0, ge=0, le=65_536)
    """Width of bottlenecks to add to each depth; 0: none, or 16 with method "adapters"."""
    depth_norms: bool = False
    """Add gain and bias of their own to the LayerNorms of each depth; method "norms" does."""
