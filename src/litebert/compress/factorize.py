"""Embeddings of width D written as embeddings of a smaller width E and a projection E -> D.

The tables are cut by the SVD of what LayerNorm lets through (a shift of all numbers of a row changes
nothing), in the metric of what the encoder feels where that is known, and the projection is fitted to
what the old LayerNorm gave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from litebert.errors import SettingsError

__all__ = ["EmbeddingTables", "FactorizedTables", "explained_energy", "factorize_tables", "felt"]

FIT_SAMPLES: Final = 16_384
"""Pieces at random positions that the projection is fitted to."""
FIT_POSITIONS: Final = 64
"""Positions that those are drawn from: where most tokens stand."""
RIDGE: Final = 1e-4
"""Ridge of the fit, a fraction of the mean squared input."""


@dataclass(frozen=True, slots=True)
class EmbeddingTables:
    """Tables that are summed, and the LayerNorm after the sum.

    Attributes:
        token: [V, D].
        position: [P, D], or None without such a table.
        token_type: [U, D].
        gain: [D] weight of the LayerNorm.
        bias: [D] bias of the LayerNorm.
        eps: added to its variance.
    """

    token: Float[Tensor, "V D"]
    position: Float[Tensor, "P D"] | None
    token_type: Float[Tensor, "U D"]
    gain: Float[Tensor, " D"]
    bias: Float[Tensor, " D"]
    eps: float

    def normalised(self, ids: Int[Tensor, " N"], places: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """Return the LayerNorm's output for pieces of the first type at some positions."""
        total = self.token[ids] + self.token_type[0]
        if self.position is not None:
            total = total + self.position[places]
        return functional.layer_norm(total, total.shape[-1:], self.gain, self.bias, self.eps)


@dataclass(frozen=True, slots=True)
class FactorizedTables:
    """Tables of width E with a plain LayerNorm, and the projection after it.

    Attributes:
        tables: of width E; gain 1, bias 0.
        weight: [D, E] of the projection.
        bias: [D] of the projection.
        explained: share of the energy of the token table that E directions hold, in [0, 1].
        fit: share of the variance of the old LayerNorm's output that is met, at most 1.
    """

    tables: EmbeddingTables
    weight: Float[Tensor, "D E"]
    bias: Float[Tensor, " D"]
    explained: float
    fit: float


def explained_energy(
    table: Float[Tensor, "V D"],
    weights: Float[Tensor, " V"] | None = None,
    metric: Float[Tensor, "D D"] | None = None,
) -> Float[Tensor, " D"]:
    """Return the share of the energy that the best 1, 2, ... D directions hold, rising to 1.

    Args:
        table: rows are centred first, each by its own mean, as LayerNorm does.
        weights: how much each row counts, such as how often it occurs; None: all the same.
        metric: G, the energy of a row r is r G r^T; None: the sum of its squares.
    """
    return _directions(table, weights, _root(metric, table.shape[1]))[1]


def factorize_tables(
    old: EmbeddingTables,
    size: int,
    *,
    weights: Float[Tensor, " V"] | None = None,
    sensitivity: Float[Tensor, "D D"] | None = None,
    seed: int = 0,
) -> FactorizedTables:
    """Cut tables of width D to width E, and fit a projection back.

    LayerNorm of width E takes the mean over E numbers away, which would lose a direction; so the
    cut rows lie in the E - 1 dimensions whose numbers add up to 0.

    Args:
        old: tables of width D.
        size: E, 2 to D.
        weights: how often each piece occurs; None: all the same.
        sensitivity: `vector_sensitivity` of what the LayerNorm gives; None: all directions alike.
        seed: of the pieces and positions that the projection is fitted to.

    Raises:
        SettingsError: E out of range.
    """
    width = int(old.token.shape[1])
    if not 2 <= size <= width:
        raise SettingsError(f"embedding size is {size}, allowed are 2 to {width}")
    root = _root(felt(sensitivity, old.gain), width)
    basis, shares = _directions(old.token, weights, root)
    kept = root @ basis[:, : size - 1]  # [D, E-1]
    turn = kept @ _zero_sum_basis(size).T.to(kept)  # [D, E]: rows of the result add up to 0

    def cut(rows: Tensor) -> Tensor:
        centred = rows.double() - rows.double().mean(-1, keepdim=True)
        return (centred @ turn).to(rows.dtype)

    new = EmbeddingTables(
        token=cut(old.token),
        position=None if old.position is None else cut(old.position),
        token_type=cut(old.token_type),
        gain=torch.ones(size, dtype=old.gain.dtype),
        bias=torch.zeros(size, dtype=old.gain.dtype),
        eps=old.eps,
    )
    weight, bias, fit = _fit(old, new, weights, seed)
    return FactorizedTables(new, weight, bias, float(shares[size - 2]), fit)


def felt(
    sensitivity: Float[Tensor, "D D"] | None, gain: Float[Tensor, " D"]
) -> Float[Tensor, "D D"] | None:
    """Return the metric of centred rows before a LayerNorm whose outputs are felt so much.

    Args:
        sensitivity: of the outputs; None: not known.
        gain: weight of the LayerNorm.
    """
    if sensitivity is None:
        return None
    scale = gain.double()
    return scale[:, None] * sensitivity.double() * scale


def _root(metric: Tensor | None, width: int) -> Tensor:
    """Symmetric root [D, D] of a metric, or the identity."""
    if metric is None:
        return torch.eye(width, dtype=torch.float64)
    values, vectors = torch.linalg.eigh(metric.double())
    return (vectors * values.clamp_min(0).sqrt()) @ vectors.T


def _directions(table: Tensor, weights: Tensor | None, root: Tensor) -> tuple[Tensor, Tensor]:
    """Directions [D, D] of falling energy of the turned rows, and the share that the first ones hold."""
    rows = table.double()
    rows = (rows - rows.mean(-1, keepdim=True)) @ root
    scaled = rows if weights is None else rows * weights.double()[:, None]
    values, vectors = torch.linalg.eigh(rows.T @ scaled)
    energy = values.flip(0).clamp_min(0)
    return vectors.flip(1), energy.cumsum(0) / energy.sum().clamp_min(1e-300)


def _zero_sum_basis(size: int) -> Float[Tensor, "E F"]:
    """Return E - 1 orthonormal columns of length E that each add up to 0 (Helmert's matrix)."""
    columns = torch.zeros(size, size - 1, dtype=torch.float64)
    for k in range(1, size):
        columns[:k, k - 1] = 1.0
        columns[k, k - 1] = -float(k)
        columns[:, k - 1] /= (k * (k + 1)) ** 0.5
    return columns


def _fit(
    old: EmbeddingTables, new: EmbeddingTables, weights: Tensor | None, seed: int
) -> tuple[Tensor, Tensor, float]:
    """Least squares of the old LayerNorm's output by the new one's."""
    generator = torch.Generator().manual_seed(seed)
    count = len(old.token)
    chances = torch.ones(count) if weights is None else weights.float().clamp_min(0) + 1e-12
    ids = torch.multinomial(chances, FIT_SAMPLES, replacement=True, generator=generator)
    rows = FIT_POSITIONS if old.position is None else min(FIT_POSITIONS, len(old.position))
    places = torch.randint(rows, (FIT_SAMPLES,), generator=generator)
    inputs, wanted = new.normalised(ids, places).double(), old.normalised(ids, places).double()
    mean_in, mean_out = inputs.mean(0), wanted.mean(0)
    x, y = inputs - mean_in, wanted - mean_out
    gram = x.T @ x
    ridge = RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    solved = torch.linalg.solve(gram + ridge, x.T @ y)  # [E, D]
    left = (y - x @ solved).square().sum() / y.square().sum().clamp_min(1e-300)
    dtype = old.gain.dtype
    bias = (mean_out - mean_in @ solved).to(dtype)
    return solved.T.to(dtype).contiguous(), bias, 1.0 - float(left)
