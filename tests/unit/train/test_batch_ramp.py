from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.errors import SettingsError
from litebert.settings import build_settings
from litebert.train.batch_ramp import BatchRamp, BatchRampSettings, steps_for_examples
from litebert.train.settings import TrainSettings

RAMPS = st.builds(
    lambda start, multiple, fraction: (
        BatchRampSettings(start_batch_size=start, fraction=fraction),
        start * multiple,
    ),
    st.integers(1, 40),
    st.integers(2, 40),
    st.floats(0.001, 1.0),
)


@settings(max_examples=150, deadline=None)
@given(RAMPS, st.integers(1, 300))
def test_sums_are_those_of_the_single_steps(
    ramp: tuple[BatchRampSettings, int], steps: int
) -> None:
    plan = BatchRamp(ramp[0], batch_size=ramp[1], total_steps=steps)
    sizes = [plan.batch_size_at(step) for step in range(steps + 5)]
    assert sizes[0] == (ramp[0].start_batch_size if plan.ramp_steps else ramp[1])
    assert sizes == sorted(sizes)
    assert all(size % ramp[0].start_batch_size == 0 for size in sizes)
    assert set(sizes[plan.ramp_steps :]) == {ramp[1]}
    assert max(sizes[: plan.ramp_steps], default=0) < ramp[1]
    sums = [0, *np.cumsum(sizes).tolist()]
    assert [plan.examples_before(step) for step in range(len(sums))] == sums


@settings(max_examples=150, deadline=None)
@given(RAMPS, st.integers(1, 10**9), st.integers(0, 2 * 10**9))
def test_the_step_of_an_example_is_the_inverse(
    ramp: tuple[BatchRampSettings, int], steps: int, step: int
) -> None:
    plan = BatchRamp(ramp[0], batch_size=ramp[1], total_steps=steps)
    first = plan.examples_before(step)
    following = plan.examples_before(step + 1)
    assert following - first == plan.batch_size_at(step)
    assert plan.step_of(first) == step
    assert plan.step_of(following - 1) == step
    assert plan.step_of(following) == step + 1


@settings(max_examples=150, deadline=None)
@given(st.one_of(RAMPS, st.just((None, 32))), st.integers(1, 10**9))
def test_the_fewest_steps_that_use_all_examples(
    ramp: tuple[BatchRampSettings | None, int], examples: int
) -> None:
    def used(steps: int) -> int:
        return BatchRamp(ramp[0], batch_size=ramp[1], total_steps=steps).examples_before(steps)

    steps = steps_for_examples(ramp[0], batch_size=ramp[1], examples=examples)
    assert used(steps) >= examples
    assert steps == 1 or used(steps - 1) < examples


def test_without_a_ramp_it_is_a_product() -> None:
    plan = BatchRamp(None, batch_size=32, total_steps=100)
    assert plan.ramp_steps == 0
    assert plan.batch_size_at(0) == 32
    assert plan.examples_before(7) == 224
    assert plan.step_of(224) == 7


def test_growth_is_linear() -> None:
    settings = BatchRampSettings(start_batch_size=8, fraction=0.3)
    plan = BatchRamp(settings, batch_size=32, total_steps=20)
    assert [plan.batch_size_at(step) for step in range(8)] == [8, 8, 16, 16, 24, 24, 32, 32]


@pytest.mark.parametrize("batch_size", [36, 8, 4])
def test_a_start_that_does_not_lead_to_the_batch_size_is_refused(batch_size: int) -> None:
    ramp = BatchRampSettings(start_batch_size=8)
    with pytest.raises(SettingsError, match=f"8 does not lead to batch_size {batch_size}"):
        BatchRamp(ramp, batch_size=batch_size, total_steps=10)
    with pytest.raises(SettingsError, match="larger whole multiple"):
        build_settings(
            TrainSettings, {"batch_size": batch_size, "batch_ramp": {"start_batch_size": 8}}
        )
