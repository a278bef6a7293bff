"""What can be chosen for tasks that tag words: the options of `[task]` in the settings."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from litebert.settings import Settings
from litebert.tasks.tag_decoding import TagScheme

__all__ = ["TagOptions"]


class TagOptions(Settings):
    """Choices common to all tasks that tag words."""

    metric: str = "entity_f1"
    """Main score."""
    scheme: TagScheme = "iob2"
    """Tags that the model learns: "iob2", or "iobes" with own tags for the last and the only word of
    an entity. Files may use any scheme."""
    label_pieces: Literal["first", "all"] = "first"
    """Which pieces of a word are learnt from; the first one answers for the word in any case."""
    units: Literal["words", "characters"] | None = None
    """What has a tag: words, or the characters of scripts that add endings to names; None: words, unless
    more than 2 % of the training spans begin or end inside one."""
    constrained: bool = True
    """Answer only sequences that the scheme allows (no I- without its B-)."""
    max_length: int = Field(default=128, ge=3)
    """Tokens of a window, special tokens included."""
    stride: int | None = Field(default=None, ge=1)
    """Pieces by which each window of a long text starts after the one before; None: half of the
    pieces that fit, so that every word has context on both sides."""

    @model_validator(mode="after")
    def _check_stride(self) -> Self:
        room = self.max_length - 2
        if self.stride is not None and self.stride > room:
            raise ValueError(
                f"stride: {self.stride} would skip pieces; allowed: 1 to max_length - 2 = {room}"
            )
        return self

    @property
    def window_stride(self) -> int:
        """The stride in pieces, at least 1."""
        return self.stride or max(1, (self.max_length - 2) // 2)
