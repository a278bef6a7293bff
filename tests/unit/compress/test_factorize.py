"""Embedding tables cut to a smaller width."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from litebert.compress.factorize import EmbeddingTables, explained_energy, factorize_tables, felt
from litebert.errors import SettingsError


def tables(vocabulary: int = 50, width: int = 12, rank: int | None = None) -> EmbeddingTables:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    mix = torch.eye(width) if rank is None else draw(rank, width)
    inner = width if rank is None else rank
    return EmbeddingTables(
        token=draw(vocabulary, inner) @ mix,
        position=0.1 * draw(20, inner) @ mix,
        token_type=0.1 * draw(2, inner) @ mix,
        gain=1 + 0.1 * draw(width),
        bias=0.1 * draw(width),
        eps=1e-12,
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_energy_is_that_of_the_singular_values(weighted: bool) -> None:
    table = tables().token
    weights = torch.rand(len(table)) if weighted else None
    rows = table.double().numpy()
    rows = rows - rows.mean(1, keepdims=True)
    if weights is not None:
        rows = rows * np.sqrt(weights.double().numpy())[:, None]
    values = np.linalg.svd(rows, compute_uv=False) ** 2
    assert np.allclose(explained_energy(table, weights), np.cumsum(values) / values.sum())


def test_tables_of_low_rank_are_met_exactly() -> None:
    """5 directions survive the centring, so 6 numbers hold them; LayerNorm then sees the same."""
    old = tables(rank=5)
    found = factorize_tables(old, 6)
    assert found.explained == pytest.approx(1.0)
    ids, places = torch.arange(50), torch.arange(50) % 20
    expected = old.normalised(ids, places)
    output = found.tables.normalised(ids, places) @ found.weight.T + found.bias
    assert found.fit == pytest.approx(1.0, abs=1e-6)
    assert torch.allclose(output, expected, atol=1e-2)  # the ridge of the fit


def test_more_numbers_fit_better_and_rows_add_up_to_zero() -> None:
    old = tables()
    fits = [factorize_tables(old, size).fit for size in (2, 4, 8, 12)]
    assert fits == sorted(fits)
    assert 0 < fits[0] < fits[-1] <= 1
    assert torch.allclose(factorize_tables(old, 8).tables.token.sum(1), torch.zeros(50), atol=1e-5)


def test_frequent_pieces_are_kept_better() -> None:
    old = tables()
    counts = torch.zeros(50)
    counts[:5] = 1.0

    def error(weights: torch.Tensor | None) -> float:
        found = factorize_tables(old, 5, weights=weights)
        ids = torch.arange(5)
        output = found.tables.normalised(ids, ids) @ found.weight.T + found.bias
        return float((output - old.normalised(ids, ids)).square().mean())

    assert error(counts) < 0.5 * error(None)


def test_directions_that_are_felt_are_kept() -> None:
    """Felt is one direction of the LayerNorm's output, which has little energy in the table."""
    old = tables()
    shrunk = old.token.clone()
    shrunk[:, 3] *= 0.05
    old = EmbeddingTables(shrunk, old.position, old.token_type, old.gain, old.bias, old.eps)
    metric = 1e-4 * torch.eye(12)
    metric[3, 3] = 1.0

    def error(sensitivity: torch.Tensor | None) -> float:
        found = factorize_tables(old, 4, sensitivity=sensitivity)
        ids = torch.arange(50)
        output = found.tables.normalised(ids, ids % 20) @ found.weight.T + found.bias
        return float((output - old.normalised(ids, ids % 20))[:, 3].square().mean())

    assert error(metric) < 0.5 * error(None)
    assert error(torch.eye(12)) == pytest.approx(error(7.0 * torch.eye(12)), rel=1e-3)


def test_the_metric_of_centred_rows_is_that_of_the_outputs() -> None:
    old = tables()
    metric = torch.rand(12, 12, dtype=torch.float64)
    metric = metric @ metric.T
    seen = felt(metric, old.gain)
    assert seen is not None
    row = torch.randn(12, dtype=torch.float64)
    output = row * old.gain.double()
    assert float(row @ seen @ row) == pytest.approx(float(output @ metric @ output))
    assert felt(None, old.gain) is None
    shares = explained_energy(old.token, None, seen)
    assert float(shares[-1]) == pytest.approx(1.0)
    assert bool((shares.diff() >= -1e-12).all())


def test_without_positions() -> None:
    old = tables()
    bare = EmbeddingTables(old.token, None, old.token_type, old.gain, old.bias, old.eps)
    assert factorize_tables(bare, 6).tables.position is None


@pytest.mark.parametrize("size", [0, 1, 13])
def test_sizes_out_of_range(size: int) -> None:
    with pytest.raises(SettingsError, match=f"embedding size is {size}, allowed are 2 to 12"):
        factorize_tables(tables(), size)
