"""Words for [MASK]: where the masks of a text are, and which pieces are likeliest there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from litebert.errors import DataError, SettingsError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from litebert.text.encoding import Encoding
    from litebert.text.tokenizer import Tokenizer

__all__ = ["FilledMask", "find_masks", "likeliest_pieces"]


@dataclass(frozen=True, slots=True)
class FilledMask:
    """A piece that may stand for [MASK]."""

    piece: str
    """As the vocabulary spells it."""
    probability: float
    token: int
    """Its id."""


def find_masks(
    tokenizer: Tokenizer, text: str, *, max_length: int, top: int
) -> tuple[Encoding, Int[np.ndarray, " P"]]:
    """Return a text as token ids, and the places of its masks.

    Args:
        tokenizer: knows the mask word.
        text: with it at least once.
        max_length: most tokens.
        top: pieces that are asked for at each mask.

    Raises:
        DataError: there is no mask in the text, or it was cut off.
        SettingsError: `top` below 1.
    """
    if top < 1:
        raise SettingsError(f"top is {top}; allowed: 1 and above")
    encoding = tokenizer.encode(text, max_length=max_length)
    masks = np.flatnonzero(np.asarray(encoding.ids) == tokenizer.mask_id)
    if not len(masks):
        raise DataError("there is no [MASK] in the text, or it is too far behind its start")
    return encoding, masks


def likeliest_pieces(
    logits: Float[np.ndarray, "P _"], tokenizer: Tokenizer, top: int
) -> list[list[FilledMask]]:
    """Return for each mask the likeliest pieces, best first; columns beyond the vocabulary do not count."""
    return [_likeliest(row[: tokenizer.vocab_size], tokenizer, top) for row in logits]


def _likeliest(row: Float[np.ndarray, " V"], tokenizer: Tokenizer, top: int) -> list[FilledMask]:
    weights: Any = np.exp(row.astype(np.float64) - row.max())
    order = np.argsort(-weights, kind="stable")[:top].tolist()
    total = weights.sum()
    return [FilledMask(tokenizer.token(i), float(weights[i] / total), i) for i in order]
