"""Pretraining batches as a function of the step: an endless stream of permuted epochs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.data.batch import Batch
from litebert.objectives.examples import ExampleMaker, collate_examples
from litebert.train.batch_ramp import BatchRamp
from litebert.train.settings import TrainSettings
from litebert.train.source import WHOLE, Part

__all__ = ["ShardSource"]


class ShardSource:
    """Examples from shards: a `litebert.train.source.BatchSource`.

    Place p of the stream is the p % N-th chunk of the permutation of epoch p // N. A step takes
    the next places, however many ranks share them, so that neither ranks nor workers nor an
    interruption changes what is trained on.
    """

    def __init__(
        self,
        maker: ExampleMaker,
        chunks: Sequence[int] | NDArray[np.int64],
        settings: TrainSettings,
        *,
        data_sha256: str,
        total_steps: int | None = None,
    ) -> None:
        """Lay out the stream.

        Args:
            maker: makes an example from the number of an epoch and a chunk.
            chunks: [N] numbers of the chunks that are trained on.
            settings: batch size, its ramp, and the seed of the order.
            data_sha256: digest of the shards and of everything that examples follow from.
            total_steps: steps of the run, that a ramp is a part of.
        """
        self._maker, self._seed = maker, settings.seed
        self._chunks = np.asarray(chunks, np.int64)
        self._ramp = BatchRamp(
            settings.batch_ramp,
            batch_size=settings.batch_size,
            total_steps=total_steps or settings.max_steps or 1,
        )
        self._sha256 = data_sha256
        self._orders: dict[int, NDArray[np.int64]] = {}

    @property
    def num_examples(self) -> int:
        """Chunks N in one epoch."""
        return len(self._chunks)

    @property
    def labels(self) -> NDArray[Any] | None:
        """None: labels are made anew for every batch."""
        return None

    @property
    def follows_progress(self) -> bool:
        """Whether the part of masked tokens moves with the progress."""
        return self._maker.settings.mlm.schedule != "constant"

    @property
    def fingerprint(self) -> str:
        """Hex digest of shards, chunks and objectives."""
        return hashlib.sha256(self._sha256.encode() + self._chunks.tobytes()).hexdigest()

    def steps_in(self, epochs: float) -> int:
        """Return the steps of so many epochs."""
        return max(1, self._ramp.step_of(max(0, math.ceil(epochs * self.num_examples) - 1)) + 1)

    def epoch(self, step: int) -> float:
        """Return the passes over the data done after `step` updates."""
        return self._ramp.examples_before(step) / self.num_examples

    def samples_of(self, step: int, part: Part = WHOLE) -> list[tuple[int, int]]:
        """Return (epoch, chunk) of each example of a step, or of one rank's share of it."""
        first = self._ramp.examples_before(step)
        places = part.of(np.arange(first, first + self._ramp.batch_size_at(step)))
        samples: list[tuple[int, int]] = []
        for place in places.tolist():
            epoch, position = divmod(place, self.num_examples)
            samples.append((epoch, int(self._chunks[self._order(epoch)[position]])))
        return samples

    def batch(self, step: int, progress: float, part: Part = WHOLE) -> Batch | None:
        """Return a step's examples, corrupted and packed."""
        samples = self.samples_of(step, part)
        if not samples:
            return None
        return collate_examples(
            [self._maker.make(epoch, chunk, progress) for epoch, chunk in samples]
        )

    def _order(self, epoch: int) -> NDArray[np.int64]:
        if epoch not in self._orders:
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
            newest = {e: order for e, order in self._orders.items() if e == epoch - 1}
            self._orders = newest | {epoch: rng.permutation(self.num_examples)}
        return self._orders[epoch]
