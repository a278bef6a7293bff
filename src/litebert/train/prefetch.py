"""Batches made ahead by worker processes, so that the device never waits for them.

A batch is a function of the step, so the result does not depend on the workers.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Final, Self

from numpy.typing import NDArray

from litebert.data.batch import Batch
from litebert.errors import DataError
from litebert.train.source import WHOLE, BatchSource, Part
from litebert.train.stop import STOP_SIGNALS

__all__ = ["Prefetched"]

_AHEAD: Final = 2
"""Batches that each worker has made or is making."""
_Key = tuple[int, float, int, int]


class Prefetched(AbstractContextManager["Prefetched"]):
    """A source whose batches are made ahead; itself a `BatchSource`."""

    def __init__(self, source: BatchSource, workers: int, total_steps: int) -> None:
        """Start the workers; leave the block to stop them.

        Args:
            source: makes the batches; can be pickled.
            workers: processes, >= 1.
            total_steps: steps of the run: the next batches are asked for at the progress that a
                run without a time budget will have.
        """
        self._source, self._total, self._count = source, total_steps, _AHEAD * workers
        self._waiting: dict[_Key, Future[Batch | None]] = {}
        self._pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(source,),
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
            DataError: a worker died, for example killed for memory.
        """
        steps = range(step, max(step + 1, min(step + self._count, self._total)))
        foreseen = [0.0] * len(steps)
        if self._source.follows_progress:
            foreseen = [min(1.0, n / self._total) for n in steps]
            if progress not in foreseen[:1]:  # the clock decides: nothing can be made ahead
                steps, foreseen = range(step, step + 1), [progress]
        ahead = [(n, at, part.rank, part.world) for n, at in zip(steps, foreseen, strict=True)]
        key = ahead[0]
        try:
            kept = {k: future for k, future in self._waiting.items() if k in ahead}
            with _signals_held():  # the first call starts the workers
                for wanted in ahead:
                    if wanted not in kept:
                        kept[wanted] = self._pool.submit(_make_batch, *wanted)
            self._waiting = kept
            return self._waiting.pop(key).result()
        except BrokenProcessPool as error:
            raise DataError(
                "a process that makes batches died, perhaps killed for memory; resume the run, "
                "with a smaller train.data_workers"
            ) from error


_source: BatchSource | None = None
"""What this worker process makes batches from."""


def _start_worker(source: BatchSource) -> None:
    global _source  # noqa: PLW0603 - the one thing a worker process holds
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the parent decides when to end
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _source = source


def _end_with_parent() -> None:
    """End this worker when its parent is gone, killed without a word to anyone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


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


def _make_batch(step: int, progress: float, rank: int, world: int) -> Batch | None:
    assert _source is not None  # noqa: S101 - set by the initializer
    return _source.batch(step, progress, Part(rank, world))
