"""Ranks that are threads of one process: the exchange itself is a list behind a barrier."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch import Tensor

from litebert.train.ranks import Ranks

T = TypeVar("T")
WAIT_SECONDS = 60


class ThreadRanks(Ranks):
    """One of several ranks in one process."""

    def __init__(self, rank: int, world: int, board: list[Any], barrier: threading.Barrier) -> None:
        super().__init__(rank, world)
        self.board, self.barrier = board, barrier

    def _all_reduce(self, values: Tensor) -> None:
        self.board[self.rank] = values.clone()
        self.barrier.wait(WAIT_SECONDS)
        total = torch.stack(self.board).sum(0)
        self.barrier.wait(WAIT_SECONDS)
        values.copy_(total)

    def _broadcast(self, values: Tensor, group: Any) -> None:
        del group
        self.board[self.rank] = values
        self.barrier.wait(WAIT_SECONDS)
        if self.rank:
            values.copy_(self.board[0])
        self.barrier.wait(WAIT_SECONDS)


def on_ranks(world: int, do: Callable[[Ranks], T]) -> list[T]:
    """Return what `do` returns on each rank; the first error is raised."""
    barrier = threading.Barrier(world)
    board: list[Any] = [None] * world

    def one(rank: int) -> T:
        try:
            return do(ThreadRanks(rank, world, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(world) as pool:
        return list(pool.map(one, range(world)))
