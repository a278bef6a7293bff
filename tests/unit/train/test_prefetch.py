from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from litebert.data.batch import Batch, EncodedExample
from litebert.errors import DataError
from litebert.train.prefetch import Prefetched
from litebert.train.settings import TrainSettings
from litebert.train.source import WHOLE, ExampleSource, Part
from litebert.train.stop import STOP_SIGNALS

SETTINGS = TrainSettings(batch_size=4, seed=3)
STEPS = 12


def examples() -> list[EncodedExample]:
    return [
        EncodedExample(np.array([i, i + 1], np.int32), np.zeros(2, np.int32), i % 2, i)
        for i in range(20)
    ]


def same(a: Batch | None, b: Batch | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.input_ids.tolist() == b.input_ids.tolist()


def test_batches_do_not_depend_on_the_workers() -> None:
    source = ExampleSource(examples(), SETTINGS)
    order = [0, 1, 2, 3, 3, 4, 2, 3, 11]  # repeated and gone back, as after a roll-back
    with Prefetched(source, 2, STEPS) as ahead:
        assert ahead.num_examples == 20
        assert ahead.fingerprint == source.fingerprint
        assert ahead.labels is not None and ahead.labels.tolist() == [i % 2 for i in range(20)]
        assert (ahead.steps_in(2), ahead.epoch(5)) == (source.steps_in(2), source.epoch(5))
        for step in order:
            for part in (WHOLE, Part(1, 2), Part(5, 6)):
                assert same(
                    ahead.batch(step, step / STEPS, part), source.batch(step, step / STEPS, part)
                )
        assert same(ahead.batch(5, 0.99), source.batch(5, 0.99)), "a progress nobody foresaw"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_died_is_named(workers: int) -> None:
    """Also when the others live."""
    with Prefetched(ExampleSource(examples(), SETTINGS), workers, STEPS) as ahead:
        assert ahead.batch(0, 0.0) is not None
        victim, *others = [worker.process for worker in ahead._workers]
        victim.kill()
        victim.join()
        with pytest.raises(DataError, match=r"died, .* with a smaller train\.data_workers"):
            for step in range(1, STEPS):
                ahead.batch(step, step / STEPS)
    assert not any(process.is_alive() for process in others)


def test_a_worker_killed_with_a_batch_half_sent_is_named() -> None:
    """More than a pipe holds: the parent has read a part when the other end is lost."""
    large = [
        EncodedExample(np.zeros(200_000, np.int32), np.zeros(200_000, np.int32), 0, i)
        for i in range(8)
    ]
    with Prefetched(ExampleSource(large, SETTINGS), 1, STEPS) as ahead:
        assert ahead.batch(0, 0.0) is not None
        worker = ahead._workers[0]
        assert worker._pipe.poll(30), "the next batch waits in the pipe"
        worker.process.kill()
        with pytest.raises(DataError, match="died"):
            ahead.batch(1, 1 / STEPS)


class Failing(ExampleSource):
    """Knows a reason not to make the later batches."""

    error: Exception = DataError("record 7: no text")

    def batch(self, step: int, progress: float, part: Part = WHOLE) -> Batch | None:
        if step > 1:
            raise self.error
        return super().batch(step, progress, part)


class StubbornError(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


class FailingStubbornly(Failing):
    """A fault of the program, whose class cannot be made anew in the parent."""

    error = StubbornError(1, 2)


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        (Failing, DataError, r"^record 7: no text$"),
        (FailingStubbornly, RuntimeError, r"Traceback(?s:.*)in batch(?s:.*)StubbornError: 1 and 2"),
    ],
)
def test_an_error_of_a_batch_comes_with_that_batch(
    source: type[ExampleSource],
    kind: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3])  # the workers import this file
    with Prefetched(source(examples(), SETTINGS), 2, STEPS) as ahead:
        assert ahead.batch(1, 1 / STEPS) is not None
        with pytest.raises(kind, match=message):
            ahead.batch(2, 2 / STEPS)
        assert ahead.batch(0, 0.0) is not None, "the workers go on"


def test_signals_are_held_back_only_while_workers_start() -> None:
    with Prefetched(ExampleSource(examples(), SETTINGS), 1, STEPS) as ahead:
        assert ahead.batch(0, 0.0) is not None
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & set(STOP_SIGNALS)
        for worker in ahead._workers:
            for number in STOP_SIGNALS:
                assert worker.process.pid is not None
                os.kill(worker.process.pid, number)
        assert same(ahead.batch(9, 9 / STEPS), ahead.batch(9, 9 / STEPS))
