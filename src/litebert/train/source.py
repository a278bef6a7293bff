"""Where batches come from: any step of any epoch by arithmetic, whole or one rank's part."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from litebert.data.batch import Batch, EncodedExample, batch_order, collate
from litebert.errors import DataError
from litebert.train.settings import TrainSettings

__all__ = ["WHOLE", "BatchSource", "ExampleSource", "Part", "make_source"]


@dataclass(frozen=True, slots=True)
class Part:
    """Which share of a step's examples one rank computes: every `world`-th from the `rank`-th.

    The order of examples does not depend on it.
    """

    rank: int = 0
    world: int = 1

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return this rank's positions of all the step's positions."""
        return positions[self.rank :: self.world]


WHOLE = Part()


class BatchSource(Protocol):
    """Training data as a function of the step."""

    @property
    def num_examples(self) -> int:
        """Examples in one epoch."""
        ...

    @property
    def fingerprint(self) -> str:
        """Hex digest of everything that the batches follow from, settings of the run aside."""
        ...

    @property
    def labels(self) -> NDArray[Any] | None:
        """Labels of all examples where they are few and fixed, None otherwise."""
        ...

    @property
    def follows_progress(self) -> bool:
        """Whether a batch depends on the progress too, not on the step alone."""
        ...

    def steps_in(self, epochs: float) -> int:
        """Return the steps that visit every example so many times, at least 1."""
        ...

    def epoch(self, step: int) -> float:
        """Return the passes over the data done after `step` updates."""
        ...

    def batch(self, step: int, progress: float, part: Part = WHOLE) -> Batch | None:
        """Return the batch of the update that follows `step` finished ones.

        Args:
            step: updates done.
            progress: part of the schedule that has passed, in [0, 1].
            part: the share of one rank.

        Returns:
            None when the share is empty.
        """
        ...


class ExampleSource:
    """Encoded examples in memory: every epoch visits each once, the last batch may be smaller."""

    def __init__(self, data: Sequence[EncodedExample], settings: TrainSettings) -> None:
        if not data:
            raise DataError("there is nothing to train on: no examples")
        self._data, self._settings = data, settings
        self._lengths = np.asarray([len(example) for example in data], np.int64)
        self._epoch: int | None = None
        self._order: list[NDArray[np.int64]] = []
        self.steps_per_epoch = math.ceil(len(data) / settings.batch_size)

    @property
    def num_examples(self) -> int:
        """Examples in one epoch."""
        return len(self._data)

    @property
    def labels(self) -> NDArray[Any] | None:
        """Labels of all examples."""
        return collate(self._data).labels

    @property
    def follows_progress(self) -> bool:
        """False: the step decides."""
        return False

    @property
    def fingerprint(self) -> str:
        """sha256 of ids, segments and labels of all examples, in order."""
        digest = hashlib.sha256()
        for example in self._data:
            digest.update(example.ids.tobytes())
            digest.update(example.type_ids.tobytes())
            label: Any = example.label
            digest.update(label.tobytes() if hasattr(label, "tobytes") else repr(label).encode())
        return digest.hexdigest()

    def steps_in(self, epochs: float) -> int:
        """Return the steps of so many epochs."""
        return max(1, math.ceil(epochs * self.steps_per_epoch - 1e-9))

    def epoch(self, step: int) -> float:
        """Return the passes over the data done after `step` updates."""
        return step / self.steps_per_epoch

    def examples_of(self, step: int) -> NDArray[np.int64]:
        """Return the indices of the examples of the update that follows `step` finished ones."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._order = batch_order(
                self._lengths,
                batch_size=self._settings.batch_size,
                seed=self._settings.seed,
                epoch=epoch,
                bucket=self._settings.bucket,
            )
            self._epoch = epoch
        return self._order[position]

    def batch(self, step: int, progress: float, part: Part = WHOLE) -> Batch | None:  # noqa: ARG002
        """Return a step's examples, packed."""
        chosen = part.of(self.examples_of(step))
        return collate([self._data[i] for i in chosen]) if len(chosen) else None


def make_source(
    data: Sequence[EncodedExample] | BatchSource, settings: TrainSettings
) -> BatchSource:
    """Return data as a source: encoded examples are wrapped, a source is taken as it is.

    Raises:
        DataError: there is no data.
    """
    return ExampleSource(data, settings) if isinstance(data, Sequence) else data
