from __future__ import annotations

import pytest

from litebert.errors import SettingsError
from litebert.train.schedule import SCHEDULES


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
