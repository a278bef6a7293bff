"""The pool: order, bound, and workers that die at the worst moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from litebert.recipes.prepare.pool import OrderedPool, WorkerDied

sys.path.insert(0, str(Path(__file__).parent))
from pool_work import Item, make

NOTICED_SECONDS = 60.0
"""A second or two on a quiet machine, with the start of the processes."""


def test_results_come_in_order_and_the_bound_holds() -> None:
    taken = 0
    most = 0

    def items() -> Iterator[Item]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield Item(number)

    given = 0
    with OrderedPool[Item, int](make, (7,), 2) as pool:
        for item, result in pool.map(items(), max_size=5):
            assert result == item.work * 7
            assert item.work == given
            given += 1
            most = max(most, taken - given)
    assert given == 40
    assert most <= 5


@pytest.mark.parametrize("death", ["die", "die while sending"])
def test_a_worker_that_dies_is_noticed(death: str) -> None:
    started = time.monotonic()
    with (
        pytest.raises(WorkerDied, match="fewer --workers"),
        OrderedPool[Item, object](make, (1,), 2) as pool,
    ):
        for _ in pool.map([Item(1), Item(2), Item(death), *map(Item, range(30))], 4):
            pass
    assert time.monotonic() - started < NOTICED_SECONDS


def test_an_error_of_the_work_is_passed_on() -> None:
    with pytest.raises(TimeoutError, match="of its own"), OrderedPool(make, (1,), 1) as pool:
        list(pool.map([Item("time out")], 2))
