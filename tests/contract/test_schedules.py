"""Every schedule: a bounded, pure function that rises in the warm-up and never after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from litebert.data.batch import EncodedExample
from litebert.train.plan import StepPlan
from litebert.train.schedule import SCHEDULES, find_schedule
from litebert.train.settings import TrainSettings
from litebert.train.source import ExampleSource


@pytest.mark.parametrize("name", list(SCHEDULES))
@pytest.mark.parametrize("warmup", [0, 10])
@pytest.mark.parametrize("total", [11, 100])
def test_a_schedule_is_a_bounded_pure_function(name: str, warmup: int, total: int) -> None:
    schedule = find_schedule(name)
    values = [schedule(step, total, warmup) for step in range(total + 1)]
    assert values == [schedule(step, total, warmup) for step in range(total + 1)]
    assert all(0 <= value <= 1 for value in values)
    assert max(values) > 0
    assert values[:warmup] == sorted(values[:warmup])
    assert values[warmup:] == sorted(values[warmup:], reverse=True)
    if warmup:
        assert values[0] == 0
        assert values[5] == 0.5
        assert schedule(5.5, total, warmup) == pytest.approx(0.55)  # time budgets give fractions


@pytest.mark.parametrize("name", list(SCHEDULES))
def test_a_schedule_says_what_it_does(name: str) -> None:
    assert SCHEDULES.get(name).__doc__


def test_a_schedule_outside_the_project_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside_schedule.py").write_text(
        "def third(step, total_steps, warmup_steps):\n    return 1 / 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(SCHEDULES, "_items", dict(SCHEDULES._items))
    ids = np.zeros(3, np.int32)
    settings = TrainSettings(schedule="outside_schedule:third", learning_rate=0.3)
    plan = StepPlan(ExampleSource([EncodedExample(ids, ids, 0, 0)], settings), settings)
    assert plan.learning_rate(0.7) == pytest.approx(0.1)
