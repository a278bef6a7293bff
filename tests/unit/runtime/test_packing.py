from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError, SettingsError
from litebert.runtime.packing import PackedRows, pack_rows

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=40)


def check(calls: list[PackedRows], lengths: list[int], max_tokens: int) -> None:
    assert sorted(i for call in calls for i in call.members.tolist()) == list(range(len(lengths)))
    for call in calls:
        rows, slots = call.shape
        assert rows * slots <= max_tokens or rows == 1
        assert call.lengths.tolist() == [lengths[i] for i in call.members]
        taken = np.zeros(call.shape, np.int64)
        for row, start, length in zip(call.rows, call.starts, call.lengths, strict=True):
            assert start >= 0 and start + length <= slots
            taken[row, start : start + length] += 1
        assert taken.max() == 1 and taken.any(axis=1).all()
        assert ((call.sequence_ids > 0) == (taken > 0)).all()


@given(LENGTHS, st.integers(1, 600))
def test_each_sequence_lies_in_one_place(lengths: list[int], max_tokens: int) -> None:
    check(pack_rows(lengths, max_tokens=max_tokens), lengths, max_tokens)


@given(LENGTHS, st.integers(60, 200))
def test_rows_of_a_told_length(lengths: list[int], row_length: int) -> None:
    calls = pack_rows(lengths, max_tokens=400, row_length=row_length)
    check(calls, lengths, 400)
    assert all(call.shape[1] <= row_length for call in calls)


@given(LENGTHS, st.integers(1, 600))
def test_what_is_put_in_comes_out_in_order(lengths: list[int], max_tokens: int) -> None:
    values = [np.arange(length) + 100 * i for i, length in enumerate(lengths)]
    found: dict[int, list[int]] = {}
    for call in pack_rows(lengths, max_tokens=max_tokens):
        grid = call.filled((values[i] for i in call.members), fill=-1)
        assert grid.shape == call.shape and grid.dtype == np.int64
        assert (grid.reshape(-1)[call.first_positions] % 100 == 0).all()
        bounds = np.cumsum(call.lengths)[:-1]
        for i, piece in zip(
            call.members, np.split(grid.reshape(-1)[call.slots], bounds), strict=True
        ):
            found[int(i)] = piece.tolist()
        assert (grid == -1).sum() == grid.size - call.lengths.sum()
        number = call.sequence_ids
        for row in range(call.shape[0]):
            inside = number[row][number[row] > 0]
            assert sorted(set(inside.tolist())) == list(range(1, int((call.rows == row).sum()) + 1))
            assert (np.diff(inside) >= 0).all()
        places = call.position_ids
        assert (
            places.reshape(-1)[call.slots] == np.concatenate([np.arange(n) for n in call.lengths])
        ).all()
    assert [found[i] for i in range(len(lengths))] == [value.tolist() for value in values]


def test_one_sequence_has_a_row_of_its_length() -> None:
    (call,) = pack_rows([17], max_tokens=4)
    assert call.shape == (1, 17) and call.first_positions.tolist() == [0]
    assert pack_rows([], max_tokens=4) == []


def test_equal_sequences_waste_nothing_and_stay_apart() -> None:
    (call,) = pack_rows([100] * 8, max_tokens=1000)
    assert call.shape == (8, 100)


def test_short_ones_share_rows() -> None:
    lengths = np.clip(np.random.default_rng(0).lognormal(3.2, 0.6, 64), 5, 128).astype(int)
    calls = pack_rows(lengths, max_tokens=4096)
    slots = sum(call.shape[0] * call.shape[1] for call in calls)
    assert slots < 1.03 * lengths.sum()
    assert max(call.shape[1] for call in calls) <= 256


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(SettingsError, match="batch_tokens is 0"):
        pack_rows([1], max_tokens=0)
    with pytest.raises(DataError, match="0 tokens"):
        pack_rows([3, 0], max_tokens=9)
    with pytest.raises(SettingsError, match="row_length is 5, but a sequence has 7"):
        pack_rows([7], max_tokens=9, row_length=5)
