"""Learning-rate schedules: pure functions of the step, so that resuming needs no state."""

from __future__ import annotations

import math
from functools import partial
from typing import Final, Literal, Protocol

from litebert.errors import SettingsError
from litebert.registry import Registry
from litebert.train.settings import TrainSettings


class Schedule(Protocol):
    """Multiplier of the peak learning rate."""

    def __call__(self, step: float, total_steps: float, warmup_steps: float) -> float:
        """Return a multiplier in [0, 1] for the update that follows `step` finished ones.

        Args:
            step: updates done, from 0; fractions are allowed (time budgets).
            total_steps: updates of the whole run, > 0.
            warmup_steps: updates over which the rate rises.
        """
        ...


SCHEDULES: Final[Registry[Schedule]] = Registry("schedule")


def make_schedule(settings: TrainSettings) -> Schedule:
    """Return the schedule that the settings name, with the settings that belong to it.

    Raises:
        SettingsError: as `find_schedule`.
    """
    schedule = find_schedule(settings.schedule)
    if schedule is wsd:
        return partial(
            wsd, decay_fraction=settings.decay_fraction, decay_shape=settings.decay_shape
        )
    return schedule


def find_schedule(name: str) -> Schedule:
    """Return a registered schedule, or the function at a dotted path, called once to see it work.

    Raises:
        SettingsError: unknown name, or what the path leads to returns no multiplier.
    """
    schedule = SCHEDULES.get(name)
    if ":" not in name:
        return schedule
    try:
        scale: object = schedule(1.0, 100.0, 10.0)
        fault = f"returned {scale!r:.80} for step 1 of 100"
    except Exception as error:  # whatever a foreign function raises
        scale, fault = None, f"failed: {error}"
    if not isinstance(scale, int | float) or not math.isfinite(scale):
        raise SettingsError(
            f"schedule {name!r} {fault}; it must be a function (step, total_steps, warmup_steps) that "
            "returns a number in [0, 1]"
        )
    return schedule


@SCHEDULES.register("linear")
def linear(step: float, total_steps: float, warmup_steps: float) -> float:
    """Rise linearly to 1, then fall linearly to 0 at the end.

    The fall is that of a run without warm-up: at the end of the warm-up the rate steps down from
    1 to 1 - warmup/total.

    Source: `optimization.py` of google-research/albert: polynomial decay of power 1 over all
        steps, replaced by `step / warmup` while step < warmup.
    Differs from: transformers, whose decay starts at 1 where the warm-up ends.
    """
    if step < warmup_steps:
        return step / warmup_steps
    return max(0.0, 1.0 - step / total_steps)


@SCHEDULES.register("linear_offset")
def linear_offset(step: float, total_steps: float, warmup_steps: float) -> float:
    """Rise linearly to 1, then fall linearly from 1 to 0, without a step between.

    Source: `get_linear_schedule_with_warmup` of transformers.
    """
    if step < warmup_steps:
        return step / warmup_steps
    return max(0.0, (total_steps - step) / max(1.0, total_steps - warmup_steps))


@SCHEDULES.register("constant")
def constant(step: float, total_steps: float, warmup_steps: float) -> float:  # noqa: ARG001
    """Rise linearly to 1 and stay there."""
    return step / warmup_steps if step < warmup_steps else 1.0


@SCHEDULES.register("cosine")
def cosine(step: float, total_steps: float, warmup_steps: float) -> float:
    """Rise linearly to 1, then fall along half a cosine to 0.

    Source: Loshchilov and Hutter 2017, equation 5, without restarts.
    """
    if step < warmup_steps:
        return step / warmup_steps
    part = min(1.0, (step - warmup_steps) / max(1.0, total_steps - warmup_steps))
    return 0.5 * (1.0 + math.cos(math.pi * part))


def wsd(
    step: float,
    total_steps: float,
    warmup_steps: float,
    *,
    decay_fraction: float = 0.2,
    decay_shape: Literal["sqrt", "linear"] = "sqrt",
) -> float:
    """Rise linearly to 1, stay there, and fall to 0 over the last part of the run.

    Until the fall begins nothing depends on the length of the run.

    Args:
        step: updates done.
        total_steps: updates of the whole run.
        warmup_steps: updates over which the rate rises.
        decay_fraction: part of the run, in (0, 1], over which the rate falls; not into the warm-up.
        decay_shape: 1 - sqrt(part) or 1 - part of the fall that has passed.

    Source: Hu et al. 2024 (MiniCPM), section 4; Hägele et al. 2024 for 1 - sqrt.
    """
    if step < warmup_steps:
        return step / warmup_steps
    start = max(warmup_steps, (1.0 - decay_fraction) * total_steps)
    fall = total_steps - start
    part = min(1.0, max(0.0, step - start) / fall) if fall > 0 else 1.0
    return 1.0 - (math.sqrt(part) if decay_shape == "sqrt" else part)


SCHEDULES.register("wsd")(wsd)  # as a call: the function keeps its own keywords
