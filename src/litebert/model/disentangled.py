"""Disentangled attention: scores from content and, apart from it, from relative positions.

`score(i, j) = (q_i k_j + q_i kr_d + k_j qr_d) / sqrt((1 + terms) D)`, where `kr` and `qr` are
projected embeddings of relative positions and d is the row of distance i - j.
Source: He et al. 2020, DeBERTa, section 3.1; logarithmic buckets and shared projections: the
released DeBERTa v2 code.
Differs from: equation 4 of the paper, which takes row j - i for the last term; the released code,
and so this one, takes i - j for both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from litebert.model.config import AlbertConfig
from litebert.model.norm import LayerNorm

__all__ = ["RelativeEmbeddings", "RelativeTerms", "bucket_table", "relative_bias", "relative_index"]

ROUNDING: Final = 1e-9
"""A logarithm this close above a whole number is that number."""


@dataclass(frozen=True, slots=True)
class RelativeTerms:
    """Relative positions as keys and queries of one attention.

    Attributes:
        key: for content to position (c2p), [A, R, D]; None without that term.
        query: for position to content (p2c), [A, R, D]; None without that term.
    """

    key: Tensor | None
    query: Tensor | None

    def scale(self, size: int) -> float:
        """Return `1 / sqrt((1 + terms) D)` for heads of size D."""
        return ((1 + (self.key is not None) + (self.query is not None)) * size) ** -0.5


class RelativeEmbeddings(nn.Module):
    """A vector of size H for each relative position; one table for all depths."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        options, hidden = config.litebert, config.hidden_size
        self.table = nn.Embedding(options.relative_rows, hidden)
        self.norm = (
            LayerNorm(hidden, eps=config.layer_norm_eps) if options.relative_form == "v2" else None
        )
        self.distance = options.relative_distance
        self.buckets = options.relative_buckets
        self.dropout_prob = config.hidden_dropout_prob

    def forward(self) -> Float[Tensor, "R H"]:
        """Return the table as attention uses it."""
        rows = self.table.weight if self.norm is None else self.norm(self.table.weight)
        if self.training and self.dropout_prob:
            rows = functional.dropout(rows, self.dropout_prob)
        return rows

    def index(
        self, query_places: Int[Tensor, "*batch Q"], key_places: Int[Tensor, "*batch K"]
    ) -> Int[Tensor, "*batch Q K"]:
        """Return the row of the table for each query and key."""
        difference = query_places[..., :, None] - key_places[..., None, :]
        return relative_index(difference, self.distance, self.buckets)


def relative_index(
    difference: Int[Tensor, "*shape"], distance: int, buckets: int | None
) -> Int[Tensor, "*shape"]:
    """Return `clamp(bucket(i - j) + k, 0, 2 k - 1)`, with k the rows on each side.

    Without buckets, `bucket` changes nothing and k = distance. With them, k = buckets, differences up
    to k / 2 have a bucket each, and the rest up to `distance` share the other half by logarithm.

    Args:
        difference: position of the query minus that of the key.
        distance: tokens from which there is no difference any more.
        buckets: rows on each side, or None.
    """
    span = buckets or distance
    if buckets is not None:
        table = torch.tensor(bucket_table(distance, buckets), device=difference.device)
        bucket = table[difference.abs().clamp_max(distance)]
        difference = bucket * difference.sign()
    return (difference + span).clamp(0, 2 * span - 1)


@cache
def bucket_table(distance: int, buckets: int) -> tuple[int, ...]:
    """Bucket of each distance from 0 to `distance`, computed once and alike on every device."""
    middle = buckets // 2

    def bucket(far: int) -> int:
        if far <= middle:
            return far
        part = math.log(far / middle) / math.log((distance - 1) / middle) * (middle - 1)
        return middle + math.ceil(part - ROUNDING)

    return tuple(bucket(far) for far in range(distance + 1))


def relative_bias(
    query: Float[Tensor, "B A Q D"],
    key: Float[Tensor, "B A K D"],
    terms: RelativeTerms,
    index: Int[Tensor, "_ Q K"],
) -> Float[Tensor, "B A Q K"]:
    """Return what relative positions add to `query @ key^T`, before scaling.

    Args:
        query: queries of the content.
        key: keys of the content.
        terms: keys and queries of the relative positions.
        index: row of the relative position of each query and key, for the batch or for each of it.
    """
    batch, heads = query.shape[:2]
    rows = index[:, None].expand(batch, heads, -1, -1)  # [B, A, Q, K]
    parts: list[Tensor] = []
    if terms.key is not None:
        parts.append((query @ terms.key.transpose(-1, -2)).gather(-1, rows))
    if terms.query is not None:
        scores = key @ terms.query.transpose(-1, -2)  # [B, A, K, R]
        parts.append(scores.gather(-1, rows.transpose(-1, -2)).transpose(-1, -2))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]
