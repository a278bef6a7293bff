"""Packing and unpacking are exact inverses for any mask."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError
from litebert.model.packing import Packing, gather_rows, scatter_rows

masks = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=5
    )
)
some_lengths = st.lists(st.integers(0, 9), min_size=1, max_size=9)


@given(masks)
def test_any_mask_round_trips(rows):
    mask = torch.tensor(rows)
    packing = Packing.from_mask(mask.long())
    values = torch.randn(*mask.shape, 3)
    packed = packing.pack(values)
    assert torch.equal(packed, values[mask])
    assert torch.equal(packing.mask(), mask)
    assert torch.equal(packing.unpack(packed), values * mask[..., None])
    assert torch.equal(packing.unpack(packed, fill=7.0)[~mask], torch.full_like(values[~mask], 7))
    assert packing.num_tokens == int(mask.sum()) == int(packing.cu_seqlens[-1])
    assert torch.equal(packing.position_ids, mask.nonzero()[:, 1])
    assert torch.equal(packing.sequence_ids, mask.nonzero()[:, 0])
    first = packing.first_tokens(packed)
    mean = packing.mean_tokens(packed)
    for row, real in enumerate(mask):
        expected = values[row][real]
        empty = torch.zeros(3)
        assert torch.equal(first[row], expected[0] if len(expected) else empty)
        assert torch.allclose(mean[row], expected.mean(0) if len(expected) else empty, atol=1e-6)


@given(some_lengths)
def test_any_lengths(lengths):
    packing = Packing.from_lengths(lengths)
    again = Packing.from_cu_seqlens(packing.cu_seqlens)
    assert again.lengths == packing.lengths == tuple(lengths)
    expected = [place for length in lengths for place in range(length)]
    assert packing.position_ids.tolist() == expected
    if sum(lengths):
        values = torch.arange(sum(lengths))
        padded = packing.unpack(values, fill=-1)
        assert torch.equal(padded[padded >= 0], values)
        assert torch.equal(packing.pack(padded), values)
    seen = [row for bucket in packing.buckets for row in bucket.rows.tolist()]
    assert sorted(seen) == list(range(sum(lengths)))
    for bucket in packing.buckets:
        assert len(set(bucket.slots.tolist())) == len(bucket.rows)
        if bucket.mask is not None:
            assert int(bucket.mask.sum()) == len(bucket.rows)
            assert bucket.mask.any(-1).all()


def test_no_padding_is_a_view():
    values = torch.randn(2, 3, 4)
    packing = Packing.from_mask(torch.ones(2, 3))
    assert packing.is_rectangular
    assert packing.indices is None
    assert packing.pack(values).data_ptr() == values.data_ptr()
    assert packing.unpack(packing.pack(values)).data_ptr() == values.data_ptr()


def test_moving_to_a_device():
    packing = Packing.from_mask(torch.tensor([[1, 0], [1, 1]]))
    assert packing.to("cpu") is packing
    moved = packing.to("meta")
    assert moved.cu_seqlens.device.type == moved.indices.device.type == "meta"
    assert moved.lengths == packing.lengths
    assert moved.padded_shape == (2, 2)


def test_gradients_of_gather_and_scatter():
    source = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([3, 0, 4])
    assert torch.autograd.gradcheck(lambda x: gather_rows(x, rows), source)
    slots = torch.tensor([6, 1, 0, 4, 3])
    assert torch.autograd.gradcheck(lambda x: scatter_rows(x, slots, 8, 2.0), source)


@pytest.mark.parametrize("lengths", [[], [3, -1]])
def test_impossible_lengths(lengths):
    with pytest.raises(DataError, match="sequences of length >= 0"):
        Packing.from_lengths(lengths)


@pytest.mark.parametrize("bounds", [[0], [1, 2], [0, 3, 2]])
def test_impossible_bounds(bounds):
    with pytest.raises(DataError, match="start at 0 and never fall"):
        Packing.from_cu_seqlens(torch.tensor(bounds))


def test_shapes_that_do_not_fit():
    with pytest.raises(DataError, match=r"must be \[B, S\]"):
        Packing.from_mask(torch.ones(3))
    with pytest.raises(DataError, match=r"must be \[B, S\]"):
        Packing.from_mask(torch.ones(0, 3))
    with pytest.raises(DataError, match=r"made for \[2, 3\]"):
        Packing.full(2, 3).pack(torch.ones(3, 2))
