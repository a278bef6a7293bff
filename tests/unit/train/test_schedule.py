from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from litebert.errors import SettingsError
from litebert.train.schedule import SCHEDULES, find_schedule, make_schedule
from litebert.train.settings import TrainSettings

DECAYING = sorted(set(SCHEDULES) - {"constant"})
ROUNDING = 1e-9
"""float64 rounding of a multiplier in [0, 1]."""

RUNS = st.builds(
    TrainSettings,
    schedule=st.sampled_from(DECAYING),
    warmup_fraction=st.floats(0, 0.9),
    decay_fraction=st.floats(0.01, 1),
    decay_shape=st.sampled_from(["sqrt", "linear"]),
)


def falling_part(settings: TrainSettings) -> float:
    """The part of a run over which the rate falls."""
    rest = 1 - settings.warmup_fraction
    return min(rest, settings.decay_fraction) if settings.schedule == "wsd" else rest


def test_official_decay_is_not_offset_by_the_warm_up() -> None:
    """facts: 3,125 of 125,000 steps of warm-up: the rate falls from 1.0 to 0.975 there."""
    linear = SCHEDULES.get("linear")
    assert linear(3124, 125_000, 3125) == pytest.approx(0.99968)
    assert linear(3125, 125_000, 3125) == pytest.approx(0.975)
    offset = SCHEDULES.get("linear_offset")
    assert offset(3125, 125_000, 3125) == 1.0
    assert offset(64062.5, 125_000, 3125) == 0.5


def test_cosine_is_half_way_at_half_time() -> None:
    assert SCHEDULES.get("cosine")(55, 100, 10) == pytest.approx(0.5)


def test_unknown_schedule_gets_a_suggestion() -> None:
    with pytest.raises(SettingsError, match="did you mean 'cosine'"):
        SCHEDULES.get("cosin")


@hypothesis_settings(max_examples=300, deadline=None)
@given(RUNS, st.integers(20, 10**6))
def test_a_schedule_that_decays_ends_at_zero(settings: TrainSettings, total: int) -> None:
    schedule = make_schedule(settings)
    warmup = settings.warmup_fraction * total
    assert schedule(total, total, warmup) <= ROUNDING
    assert schedule(total - 1, total, warmup) <= 1 / (falling_part(settings) * total) + ROUNDING


@hypothesis_settings(max_examples=150, deadline=None)
@given(RUNS, st.integers(100, 5000), st.floats(1, 300), st.integers(0, 2**32))
def test_a_time_budget_ends_with_a_finished_decay(
    settings: TrainSettings, total: int, budget: float, seed: int
) -> None:
    """Steps take from nothing to a fiftieth of the budget; the number of steps is not known."""
    schedule, clock, step = make_schedule(settings), random.Random(seed), 0
    seconds, longest, last = 0.0, budget / 50, 1.0
    while (progress := min(1.0, max(step / total, seconds / budget))) < 1:
        last = schedule(progress * total, total, settings.warmup_fraction * total)
        seconds += clock.uniform(0, longest)
        step += 1
    largest_stride = max(1 / total, longest / budget)
    assert last <= largest_stride / falling_part(settings) + ROUNDING
    assert schedule(total, total, settings.warmup_fraction * total) <= ROUNDING


def test_wsd_is_flat_and_then_falls() -> None:
    wsd = make_schedule(TrainSettings(schedule="wsd", decay_fraction=0.2, decay_shape="linear"))
    assert [wsd(step, 100, 10) for step in (5, 10, 50, 80, 90, 100)] == pytest.approx(
        [0.5, 1, 1, 1, 0.5, 0]
    )
    root = make_schedule(TrainSettings(schedule="wsd", decay_fraction=0.2))
    assert root(85, 100, 10) == pytest.approx(0.5)
    assert root(100, 100, 10) == 0


def test_the_flat_part_of_wsd_does_not_depend_on_the_length() -> None:
    wsd = make_schedule(TrainSettings(schedule="wsd", decay_fraction=0.5))
    assert [wsd(step, 200, 10) for step in range(100)] == [
        wsd(step, 1000, 10) for step in range(100)
    ]


def test_the_fall_of_wsd_waits_for_the_end_of_the_warm_up() -> None:
    wsd = make_schedule(TrainSettings(schedule="wsd", decay_fraction=1.0, decay_shape="linear"))
    assert [wsd(step, 100, 60) for step in (30, 60, 80, 100)] == [0.5, 1, 0.5, 0]
    assert wsd(100, 100, 100) == 0


def test_other_schedules_are_made_as_they_are() -> None:
    assert make_schedule(TrainSettings(schedule="cosine")) is find_schedule("cosine")
