"""A batch size that grows during the first part of a run: arithmetic on the step, no memory."""

from __future__ import annotations

import math

from pydantic import Field

from litebert.errors import SettingsError
from litebert.settings import Settings


class BatchRampSettings(Settings):
    """How the batch size grows to `batch_size`."""

    start_batch_size: int = Field(ge=1, le=1_000_000)
    """Examples in the first step; `batch_size` is a whole multiple of it."""
    fraction: float = Field(default=0.1, gt=0, le=1)
    """Part of all steps over which the batch size grows."""


class BatchRamp:
    """The batch size of each step of one run.

    It grows from `start` by `start` at a time, at equal distances, and is `batch_size` from the
    end of the ramp on. Without a ramp it is `batch_size` from the first step on. A ramp depends on
    steps alone, never on time, so that a resumed run sees the same examples.

    Attributes:
        batch_size: examples per step after the ramp.
        ramp_steps: steps with fewer examples than that.
    """

    def __init__(
        self, settings: BatchRampSettings | None, *, batch_size: int, total_steps: int
    ) -> None:
        """Lay out the ramp of a run of `total_steps`.

        Raises:
            SettingsError: `batch_size` is no multiple of the start, or not above it.
        """
        self.batch_size = batch_size
        self._start, self.ramp_steps = batch_size, 0
        if settings is not None:
            check_ramp(settings, batch_size)
            self._start = settings.start_batch_size
            self.ramp_steps = min(total_steps, max(1, round(settings.fraction * total_steps)))
        self._growth = batch_size // self._start - 1

    def batch_size_at(self, step: int) -> int:
        """Return the examples of the update that follows `step` finished ones."""
        if step >= self.ramp_steps:
            return self.batch_size
        return self._start * (1 + step * self._growth // self.ramp_steps)

    def examples_before(self, step: int) -> int:
        """Return how many examples the first `step` updates use together, in O(log ramp_steps)."""
        ramped = min(step, self.ramp_steps)
        multiples = ramped + _floor_sum(ramped, self._growth, self.ramp_steps)
        return self._start * multiples + self.batch_size * (step - ramped)

    def step_of(self, example: int) -> int:
        """Return the step that uses an example, both from 0: the inverse of `examples_before`."""
        before_full = self.examples_before(self.ramp_steps)
        if example >= before_full:
            return self.ramp_steps + (example - before_full) // self.batch_size
        low, high = 0, self.ramp_steps  # examples_before(low) <= example < examples_before(high)
        while high - low > 1:
            middle = (low + high) // 2
            if self.examples_before(middle) <= example:
                low = middle
            else:
                high = middle
        return low


def check_ramp(settings: BatchRampSettings, batch_size: int) -> None:
    """Refuse a ramp that cannot reach `batch_size` in whole multiples.

    Raises:
        SettingsError: `batch_size` is no multiple of the start, or not above it.
    """
    start = settings.start_batch_size
    if batch_size <= start or batch_size % start:
        raise SettingsError(
            f"batch_ramp.start_batch_size {start} does not lead to batch_size {batch_size}; "
            "batch_size must be a larger whole multiple of it; change one of the two, or leave the ramp out"
        )


def steps_for_examples(
    settings: BatchRampSettings | None, *, batch_size: int, examples: int
) -> int:
    """Return the fewest steps, ramp included, that use at least `examples` examples.

    A longer run has a longer ramp; still more steps always mean more examples, so that the answer
    is found by halving.

    Raises:
        SettingsError: as `BatchRamp`.
    """

    def used(steps: int) -> int:
        ramp = BatchRamp(settings, batch_size=batch_size, total_steps=steps)
        return ramp.examples_before(steps)

    smallest = batch_size if settings is None else settings.start_batch_size
    low, high = 0, max(1, math.ceil(examples / smallest))  # used(low) < examples <= used(high)
    while high - low > 1:
        middle = (low + high) // 2
        if used(middle) < examples:
            low = middle
        else:
            high = middle
    return high


def _floor_sum(count: int, numerator: int, denominator: int) -> int:
    """Return the sum over i < count of floor(i * numerator / denominator).

    Euclid's algorithm on the number of lattice points below a line.
    """
    total, offset = 0, 0
    while count > 0 and numerator > 0:
        total += (count - 1) * count // 2 * (numerator // denominator)
        numerator %= denominator
        total += count * (offset // denominator)
        offset %= denominator
        top = numerator * count + offset
        count, offset = top // denominator, top % denominator
        numerator, denominator = denominator, numerator
    return total
