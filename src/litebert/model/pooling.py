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
    types = packing.sequence_ids * 0 if token_type_ids is None else token_type_ids
    is_second = (types > 0).float()[:, None]
    # In float32: as bfloat16, a count of tokens stops at 256.
    u = _mean_where(hidden.float(), packing, 1 - is_second)
    v = _mean_where(hidden.float(), packing, is_second)
    rows = torch.cat([(u - v).abs(), u * v, packing.mean_tokens(hidden.float())], 1)
    return rows.to(hidden.dtype)


def _mean_where(
    hidden: Float[Tensor, "T H"], packing: Packing, chosen: Float[Tensor, "T 1"]
) -> Float[Tensor, "N H"]:
    """Mean over the tokens of each sequence where `chosen` is 1; zeros where there are none."""
    wide = torch.cat([hidden * chosen, chosen], 1)
    sums = wide.new_zeros(packing.num_sequences, wide.shape[1])
    sums = sums.index_add(0, packing.sequence_ids, wide)
    return sums[:, :-1] / sums[:, -1:].clamp_min(1)
