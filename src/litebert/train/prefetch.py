"""Batches made ahead by worker processes, so that the device never waits for them.

A batch is a function of the step, so the result does not depend on the workers. Each worker has a
pipe of its own: a lock that several share would be lost with the worker that dies holding it, and
the others would wait for ever.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections import deque
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Final, Self

from numpy.typing import NDArray

from litebert.data.batch import Batch
from litebert.errors import DataError, LitebertError
from litebert.train.source import WHOLE, BatchSource, Part
from litebert.train.stop import STOP_SIGNALS

__all__ = ["Prefetched"]

_AHEAD: Final = 2
"""Batches that each worker has made or is making."""
_Key = tuple[int, float, int, int]


class Prefetched(AbstractContextManager["Prefetched"]):
    """A source whose batches are made ahead; itself a `BatchSource`."""

    def __init__(self, source: BatchSource, workers: int, total_steps: int) -> None:
        """Start the workers; leave the block to end them.

        Args:
            source: makes the batches; can be pickled.
            workers: processes, >= 1.
            total_steps: steps of the run: the next batches are asked for at the progress that a
                run without a time budget will have.
        """
        self._source, self._total, self._count = source, total_steps, _AHEAD * workers
        with _signals_held():
            self._workers = [_Worker(source) for _ in range(workers)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.end()

    @property
    def num_examples(self) -> int:
        """Examples in one epoch."""
        return self._source.num_examples

    @property
    def fingerprint(self) -> str:
        """Digest of the source."""
        return self._source.fingerprint

    @property
    def labels(self) -> NDArray[Any] | None:
        """Labels of the source."""
        return self._source.labels

    @property
    def follows_progress(self) -> bool:
        """Whether batches of the source depend on the progress."""
        return self._source.follows_progress

    def steps_in(self, epochs: float) -> int:
        """Return the steps of so many epochs."""
        return self._source.steps_in(epochs)

    def epoch(self, step: int) -> float:
        """Return the passes over the data done after `step` updates."""
        return self._source.epoch(step)

    def batch(self, step: int, progress: float, part: Part = WHOLE) -> Batch | None:
        """Return a step's batch, made ahead where it could be foreseen.

        Raises:
            DataError: the batch cannot be made, or a worker died, for example killed for memory.
            RuntimeError: a fault of the program in a worker.
        """
        steps = range(step, max(step + 1, min(step + self._count, self._total)))
        foreseen = [0.0] * len(steps)
        if self._source.follows_progress:
            foreseen = [min(1.0, n / self._total) for n in steps]
            if progress not in foreseen[:1]:  # the clock decides: nothing can be made ahead
                steps, foreseen = range(step, step + 1), [progress]
        ahead = [(n, at, part.rank, part.world) for n, at in zip(steps, foreseen, strict=True)]
        asked = {key for worker in self._workers for key in worker.asked}
        for key in ahead:
            if key not in asked:
                min(self._workers, key=lambda worker: len(worker.asked)).ask(key)
        return next(worker for worker in self._workers if ahead[0] in worker.asked).take(ahead[0])


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why there is no batch, as text: not every error survives the way to another process."""

    words: str
    is_ours: bool
    """Raised on purpose, for people to read."""


class _Worker:
    """A process that answers keys with batches, in order; it holds nothing worth keeping."""

    def __init__(self, source: BatchSource) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(source, theirs), daemon=True)
        self.process.start()
        theirs.close()  # so that the pipe ends when the process does
        self.asked: deque[_Key] = deque()

    def ask(self, key: _Key) -> None:
        try:
            self._pipe.send(key)
        except OSError as error:
            raise _died() from error
        self.asked.append(key)

    def take(self, key: _Key) -> Batch | None:
        """Wait for the batch of a key; what was asked before it is no longer wanted.

        Raises:
            DataError: the batch cannot be made, in the words of the worker, or the worker died.
            RuntimeError: a fault of the program, with the worker's traceback.
        """
        while True:
            try:
                result = self._pipe.recv()
            except (EOFError, OSError) as error:
                raise _died() from error
            if self.asked.popleft() != key:
                continue
            if isinstance(result, _Failure):
                raise DataError(result.words) if result.is_ours else RuntimeError(result.words)
            return result

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self._pipe.close()


def _died() -> DataError:
    return DataError(
        "a process that makes batches died, perhaps killed for memory; resume the run, "
        "with a smaller train.data_workers"
    )


def _work(source: BatchSource, pipe: Connection) -> None:
    """Answer until the pipe ends, with the parent or on its word."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the parent decides when to end
    while True:
        try:
            step, progress, rank, world = pipe.recv()
        except EOFError:
            return
        try:
            result: object = source.batch(step, progress, Part(rank, world))
        except LitebertError as error:
            result = _Failure(str(error), is_ours=True)
        except Exception as error:  # a fault of the program: the parent raises it with its place
            result = _Failure("".join(traceback.format_exception(error)), is_ours=False)
        try:
            pipe.send(result)
        except BrokenPipeError:
            return


@contextmanager
def _signals_held() -> Generator[None]:
    """Hold back the signals that ask for an end: workers started meanwhile never get them.

    A Ctrl-C reaches all processes of a terminal, also workers that are not ready to ignore it.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
