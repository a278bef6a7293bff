"""Replaced token detection (ELECTRA): a small generator fills the gaps, the model finds what it changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from litebert.data.batch import Batch
from litebert.objectives.base import OBJECTIVES, Objective
from litebert.settings import Settings

__all__ = ["ReplacedTokens", "RtdSettings"]


class RtdSettings(Settings):
    """Generator and discriminator.

    Source: Clark et al. 2020 (ELECTRA); He et al. 2021 (DeBERTaV3) for the embedding table.
    """

    weight: float = Field(default=50.0, ge=0.0)
    """Weight of the discriminator's loss (lambda); the generator's is `mlm.weight`."""
    share: Literal["all", "embeddings", "none"] = "embeddings"
    """What the generator takes from the discriminator: block and embeddings, embeddings, nothing."""
    generator_depth: int | None = Field(default=None, ge=1)
    """Depths of the generator; None: a third of the discriminator's, at least 1."""
    generator_hidden_size: int | None = Field(default=None, ge=1)
    """Width of a generator with a block of its own; None: the discriminator's."""
    disentangle: bool = True
    """Whether the discriminator's token table is the generator's, held fixed, plus a difference of
    its own, so that the two losses do not pull one table two ways."""


@OBJECTIVES.register("rtd")
class ReplacedTokens(Objective):
    """Is each token the original? Tokens that the generator guessed right count as original."""

    name = "rtd"

    def __init__(self, settings: RtdSettings) -> None:
        self.settings = settings

    def count(self, batch: Batch) -> int:
        """Return the number of tokens, special ones included, as in the official code."""
        return batch.num_tokens
