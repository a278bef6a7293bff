"""Work spread over processes, results in order, with a bound on what is under way."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from litebert.errors import LitebertError

__all__ = ["OrderedPool", "WorkItem", "WorkerDied"]


class WorkerDied(LitebertError, RuntimeError):  # noqa: N818 - the name says what happened
    """A worker process ended before its work did."""


class WorkItem(Protocol):
    """What a pool is given: work, and how much of the bound it takes."""

    @property
    def work(self) -> Any:
        """Sent to the worker, pickled."""
        ...

    @property
    def size(self) -> int:
        """Its share of the bound."""
        ...


T = TypeVar("T", bound=WorkItem)
R = TypeVar("R")

_function: Callable[[Any], Any] | None = None


class OrderedPool(Generic[T, R]):
    """Processes that each build one function and apply it; results come in the order of the work.

    Workers are started fresh (not forked), ignore the interrupt of the terminal, which is the
    parent's to handle, and end by themselves when their parent is gone.
    """

    def __init__(
        self, make: Callable[..., Callable[[Any], R]], arguments: tuple[Any, ...], workers: int
    ) -> None:
        """Prepare the pool; processes start with the first work.

        Args:
            make: called in each worker with `arguments`; returns what is applied to the work.
            arguments: must pickle.
            workers: processes, at least 1.
        """
        self._pool = ProcessPoolExecutor(
            max_workers=workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(make, arguments),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def map(self, items: Iterable[T], max_size: int) -> Iterator[tuple[T, R]]:
        """Yield (item, result) in the order of the items.

        Args:
            items: read only as far as the bound allows.
            max_size: no further item is taken while the sizes of those under way reach this.

        Raises:
            WorkerDied: a worker was killed or could not start.
        """
        waiting: deque[tuple[T, Future[R]]] = deque()
        size = 0
        try:
            for item in items:
                waiting.append((item, cast("Future[R]", self._pool.submit(_work, item.work))))
                size += item.size
                while size >= max_size or (waiting and waiting[0][1].done()):
                    first, future = waiting.popleft()
                    size -= first.size
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        except BrokenProcessPool as error:
            raise WorkerDied(
                "a worker process was killed or could not start, mostly because memory ran out; "
                "use fewer --workers and give the same command again: finished shards are kept"
            ) from error


def _start_worker(make: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    global _function  # noqa: PLW0603 - the state of a worker process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _function = make(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(work: Any) -> Any:
    assert _function is not None  # noqa: S101 - the initializer ran
    return _function(work)
