"""A forward pass that stops after each depth, so that sequences whose answer is found can leave it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from jaxtyping import Float, Int
from torch import Tensor

from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.head_kinds import EXIT_WORDS
from litebert.model.packing import Packing

__all__ = ["Stepwise", "logits_after_depth"]


class Stepwise:
    """One packed batch on its way through the depths.

    Attributes:
        packing: bounds of the sequences that are still there.
        sequences: their numbers in the batch.
        depth: depths run so far.
        tokens: tokens that went through each of them.
    """

    def __init__(
        self,
        model: AlbertWithHead,
        input_ids: Int[Tensor, " T"],
        packing: Packing,
        token_type_ids: Int[Tensor, " T"] | None = None,
        position_ids: Int[Tensor, " T"] | None = None,
    ) -> None:
        """Embed the batch; arguments as `AlbertWithHead.forward_packed`.

        Raises:
            SettingsError: a head that answers only after the last depth.
            DataError: as `AlbertWithHead.forward_packed`.
        """
        if model.head not in EXIT_WORDS:
            raise SettingsError(
                f"the head {model.head!r} answers after the last depth only; exits are for heads "
                f"{' and '.join(sorted(EXIT_WORDS))}"
            )
        self._model, self._encoder = model, model.model.encoder
        self._hidden = model.model.embed_packed(input_ids, packing, token_type_ids, position_ids)
        if position_ids is None and packing.indices is not None:
            position_ids = packing.position_ids
        self._places, self._types = position_ids, token_type_ids
        self._run = self._encoder.begin(self._hidden, packing, position_ids)
        self.packing = packing
        self.sequences = list(range(packing.num_sequences))
        self.depth = 0
        self.tokens: list[int] = []

    def advance(self) -> None:
        """Run the next depth."""
        self._hidden = self._encoder.run_depth(self.depth, self._hidden, self._run)
        self.depth += 1
        self.tokens.append(self.packing.num_tokens)

    def logits(self) -> Float[Tensor, "rows C"]:
        """Return what the head says after this depth, a row for each sequence, or for each token."""
        return logits_after_depth(self._model, self._hidden, self.packing, self.depth, self._types)

    def keep(self, chosen: Sequence[int]) -> None:
        """Go on with some of the sequences; the tokens of the others are gone.

        Args:
            chosen: places in `sequences`, rising.

        Raises:
            DataError: none, or places that are not there.
        """
        packing, rows = self.packing.select(chosen)
        self._hidden = self._hidden.index_select(0, rows)
        if self._places is not None:
            self._places = self._places.index_select(0, rows)
        if self._types is not None:
            self._types = self._types.index_select(0, rows)
        self._run = self._encoder.begin(self._hidden, packing, self._places, self._run)
        self.packing = packing
        self.sequences = [self.sequences[place] for place in chosen]


def logits_after_depth(
    model: AlbertWithHead,
    hidden: Float[Tensor, "T H"],
    packing: Packing,
    depth: int,
    token_type_ids: Int[Tensor, " T"] | None = None,
) -> Float[Tensor, "rows C"]:
    """Return what a sequence or token head says of what a depth gave, before the last norm.

    Args:
        model: with exit heads, or with one classifier for all depths.
        hidden: output of the depth.
        packing: bounds of the sequences.
        depth: how many depths have run, 1..L.
        token_type_ids: as the model was given them.
    """
    hidden = model.model.encoder.end(hidden)
    if model.head == "token":
        return model.logits_after(depth, hidden)
    pooled = cast(Tensor, model.model.pool(hidden, packing, token_type_ids))
    return model.logits_after(depth, pooled)
