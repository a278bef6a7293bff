"""What the pooler reads of each sequence: the first token, the mean, or how its two texts differ."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from litebert.model.packing import Packing

__all__ = ["pooler_rows"]


def pooler_rows(
    hidden: Float[Tensor, "T H"],
    packing: Packing,
    token_type_ids: Int[Tensor, " T"] | None,
    word: str,
) -> Float[Tensor, "N _"]:
    """Return what the pooler multiplies, [N, H] or [N, 3H].

    `segments` gives three vectors side by side: the absolute difference and the product of the mean over
    the first text u and the mean over the second v, `|u - v|` and `u * v`, and the mean over all tokens.
    Source: Conneau et al. 2017, Supervised Learning of Universal Sentence Representations, section 3.1.
    Differs from: there the texts are encoded apart; here they see each other.

    Args:
        hidden: after the last depth.
        packing: bounds of the sequences.
        token_type_ids: 0 in the first text; None: everywhere, so that v is 0.
        word: `litebert.pooler_reads`.
    """
    if word == "first":
        return packing.first_tokens(hidden)
    if word == "mean":
        return packing.mean_tokens(hidden)
    types = (
        packing.sequence_ids.new_zeros(len(hidden)) if token_type_ids is None else token_type_ids
    )
    is_second = (types > 0).to(hidden.dtype)[:, None]
    # One sum over both sides: the texts are the two halves of a row of width 2 (H + 1).
    ones = torch.ones_like(is_second)
    wide = torch.cat([hidden, ones], 1)
    sums = wide.new_zeros(packing.num_sequences, 2 * wide.shape[1]).index_add(
        0, packing.sequence_ids, torch.cat([wide * (1 - is_second), wide * is_second], 1)
    )
    first, second = sums.chunk(2, dim=1)
    u = first[:, :-1] / first[:, -1:].clamp_min(1)
    v = second[:, :-1] / second[:, -1:].clamp_min(1)
    both = first + second
    mean = both[:, :-1] / both[:, -1:].clamp_min(1)
    return torch.cat([(u - v).abs(), u * v, mean], 1)
