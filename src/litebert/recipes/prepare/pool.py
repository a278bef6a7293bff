"""Work spread over processes, results in order, with a bound on what is under way.

Each worker has a pipe of its own, whose other end nobody else holds: a worker that dies, even in
the middle of sending, is noticed at once, and workers whose parent dies end by themselves. (The
pools of the standard library share one pipe, and wait for ever for the rest of such a message.)
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar, cast

from litebert.errors import LitebertError

__all__ = ["OrderedPool", "WorkItem", "WorkerDied"]

_JOIN_SECONDS: Final = 10.0
_DIED: Final = (
    "a worker process was killed or could not start, mostly because memory ran out; use fewer "
    "--workers and give the same command again: finished shards are kept"
)


class WorkerDied(LitebertError, RuntimeError):  # noqa: N818 - the name says what happened
    """A worker process ended before its work did; finished shards are good."""

    exit_code = 75


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


@dataclass(slots=True)
class _Task(Generic[T, R]):
    """An item that was taken, and its result once there is one."""

    item: T
    result: R | None = None
    is_done: bool = False


class OrderedPool(Generic[T, R]):
    """Processes that each build one function and apply it; results come in the order of the work.

    Workers are started fresh (not forked) and ignore the interrupt of the terminal, which is the
    parent's to handle. Use in a `with` block.
    """

    def __init__(
        self, make: Callable[..., Callable[[Any], R]], arguments: tuple[Any, ...], workers: int
    ) -> None:
        """Start the processes.

        Args:
            make: called in each worker with `arguments`; returns what is applied to the work.
            arguments: must pickle.
            workers: processes, at least 1.
        """
        context = multiprocessing.get_context("spawn")
        self._processes: list[BaseProcess] = []
        self._idle: list[Connection] = []
        self._busy: dict[Connection, _Task[T, R]] = {}
        for _ in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, make, arguments), daemon=True)
            process.start()
            theirs.close()  # so that the end of the worker is the end of the pipe
            self._processes.append(process)
            self._idle.append(cast(Connection, ours))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes, whatever they do."""
        for connection in (*self._idle, *self._busy):
            connection.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(_JOIN_SECONDS)

    def map(self, items: Iterable[T], max_size: int) -> Iterator[tuple[T, R]]:
        """Yield (item, result) in the order of the items.

        Args:
            items: read only as far as the bound allows.
            max_size: no further item is taken while the sizes of those under way reach this.

        Raises:
            WorkerDied: a worker was killed or could not start.
        """
        source, has_more, size = iter(items), True, 0
        taken: deque[_Task[T, R]] = deque()  # in order, until they are yielded
        unsent: deque[_Task[T, R]] = deque()
        while taken or has_more:
            while unsent and self._idle:
                self._send(unsent.popleft())
            while taken and taken[0].is_done:
                task = taken.popleft()
                size -= task.item.size
                yield task.item, cast(R, task.result)
            if has_more and size < max_size:
                item = next(source, None)
                has_more = item is not None
                if item is not None:
                    taken.append(_Task(item))
                    unsent.append(taken[-1])
                    size += item.size
                self._receive(block=False)
            elif taken:
                self._receive(block=not (unsent and self._idle))

    def _send(self, task: _Task[T, R]) -> None:
        connection = self._idle.pop()
        self._busy[connection] = task
        try:
            connection.send(task.item.work)
        except OSError as error:
            raise WorkerDied(_DIED) from error

    def _receive(self, *, block: bool) -> None:
        """Take the results that are there; wait for the first one if `block`."""
        for ready in wait(list(self._busy), None if block else 0):
            connection = cast(Connection, ready)
            try:
                result, error = connection.recv()
            except (EOFError, OSError) as gone:
                raise WorkerDied(_DIED) from gone
            task = self._busy.pop(connection)
            self._idle.append(connection)
            if error is not None:
                raise error
            task.result, task.is_done = result, True


def _serve(
    connection: Connection, make: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]
) -> None:
    """What a worker does until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    apply = make(*arguments)
    while True:
        try:
            work = connection.recv()
        except (EOFError, OSError):
            return
        answer: tuple[Any, Exception | None]
        try:
            answer = apply(work), None
        except Exception as error:
            error.add_note(traceback.format_exc())  # the place is lost on the way
            answer = None, error
        try:
            connection.send(answer)
        except OSError:
            return
