from __future__ import annotations

import os
import signal

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
    """Also when the others live, who ignore the signal that the pool would end them with."""
    with Prefetched(ExampleSource(examples(), SETTINGS), workers, STEPS) as ahead:
        assert ahead.batch(0, 0.0) is not None
        worker = next(iter(ahead._pool._processes.values()))
        worker.kill()
        worker.join()
        with pytest.raises(DataError, match=r"died, .* with a smaller train\.data_workers"):
            for step in range(1, STEPS):
                ahead.batch(step, step / STEPS)


def test_signals_are_held_back_only_while_workers_start() -> None:
    with Prefetched(ExampleSource(examples(), SETTINGS), 1, STEPS) as ahead:
        assert ahead.batch(0, 0.0) is not None
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & set(STOP_SIGNALS)
        for worker in ahead._pool._processes:
            for number in STOP_SIGNALS:
                os.kill(worker, number)
        assert same(ahead.batch(9, 9 / STEPS), ahead.batch(9, 9 / STEPS))
