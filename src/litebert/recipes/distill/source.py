"""Distillation batches as a function of the step, in an order that suits a cache of outputs."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from litebert.compress.teacher_cache import SHARD_EXAMPLES, TextSet
from litebert.data.batch import Batch, collate
from litebert.train.settings import TrainSettings
from litebert.train.source import WHOLE, Part

__all__ = ["DistillSource"]


class DistillSource:
    """Texts with numbers 0..N-1: a `litebert.train.source.BatchSource`.

    An epoch goes through the shards of the cache in a random order, and through each at random: so
    a run that ends early has asked the teacher about little more than it used.
    """

    def __init__(self, texts: TextSet, count: int, settings: TrainSettings, *, key: str) -> None:
        """Lay out the stream.

        Args:
            texts: what is learnt from.
            count: N; texts with larger numbers are not used.
            settings: batch size and seed.
            key: digest of teacher and losses.
        """
        self._texts, self._count, self._key = texts, count, key
        self._batch_size, self._seed = settings.batch_size, settings.seed
        self._orders: dict[int, NDArray[np.int64]] = {}

    @property
    def num_examples(self) -> int:
        """Texts N in one epoch."""
        return self._count

    @property
    def labels(self) -> NDArray[Any] | None:
        """None: the teacher answers."""
        return None

    @property
    def follows_progress(self) -> bool:
        """False: the step decides."""
        return False

    @property
    def fingerprint(self) -> str:
        """Hex digest of texts, teacher and losses."""
        text = f"{self._texts.fingerprint} {self._count} {self._key}"
        return hashlib.sha256(text.encode()).hexdigest()

    def steps_in(self, epochs: float) -> int:
        """Return the steps of so many epochs."""
        return max(1, math.ceil(epochs * self._count / self._batch_size - 1e-9))

    def epoch(self, step: int) -> float:
        """Return the passes over the texts done after `step` updates."""
        return step * self._batch_size / self._count

    def numbers_of(self, step: int, part: Part = WHOLE) -> list[int]:
        """Return the texts of a step."""
        first = step * self._batch_size
        places = part.of(np.arange(first, first + self._batch_size))
        found: list[int] = []
        for place in places.tolist():
            epoch, position = divmod(place, self._count)
            found.append(int(self._order(epoch)[position]))
        return found

    def batch(self, step: int, progress: float, part: Part = WHOLE) -> Batch | None:  # noqa: ARG002
        """Return a step's texts, packed."""
        numbers = self.numbers_of(step, part)
        return collate([self._texts.example(n) for n in numbers]) if numbers else None

    def _order(self, epoch: int) -> NDArray[np.int64]:
        if epoch not in self._orders:
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, epoch]))
            shards = rng.permutation(-(-self._count // SHARD_EXAMPLES))
            parts: list[NDArray[np.int64]] = []
            for shard in shards.tolist():
                first = shard * SHARD_EXAMPLES
                size = min(SHARD_EXAMPLES, self._count - first)
                parts.append(first + rng.permutation(size))
            newest = {e: order for e, order in self._orders.items() if e == epoch - 1}
            self._orders = newest | {epoch: np.concatenate(parts)}
        return self._orders[epoch]
