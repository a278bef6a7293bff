from __future__ import annotations

from itertools import count
from typing import Any

import pytest
import torch

from litebert.objectives.loss import PretrainingLoss
from litebert.recipes.durations import format_duration
from litebert.recipes.pretrain.estimate import PROBE_PASSES, estimate_run
from litebert.recipes.pretrain.plan import make_plan
from litebert.recipes.pretrain.run import new_model, resolve
from litebert.recipes.pretrain.settings import PretrainSettings


def estimate(
    settings: PretrainSettings, tick: float = 1.0, world: int = 1, model: Any = None
) -> Any:
    """Every look at the clock is `tick` seconds after the last one."""
    plan = make_plan(settings)
    ticks = count()
    return estimate_run(
        model or new_model(plan),
        plan.config,
        plan.source(),
        PretrainingLoss(settings.objectives, seed=0),
        settings,
        world=world,
        clock=lambda: tick * next(ticks),
    )


def test_the_estimate_is_arithmetic_on_the_clock(wanted: Any) -> None:
    found = estimate(wanted(train={"micro_batch_tokens": 10_000}), tick=0.5)
    assert found.passes == PROBE_PASSES
    assert found.total_steps == 4
    assert found.tokens_per_second == pytest.approx(found.tokens_per_step / 1.0)
    assert found.seconds == pytest.approx(4 * 1.0), "half a second of data, half of computing"
    assert found.data_fraction == pytest.approx(0.5)
    assert found.parameters == sum(p.numel() for p in new_model(make_plan(wanted())).parameters())
    assert found.memory_bytes > 16 * found.parameters


def test_ranks_share_and_a_budget_ends(wanted: Any) -> None:
    whole = {"train": {"micro_batch_tokens": 10_000}}
    assert estimate(wanted(**whole), world=2).seconds == estimate(wanted(**whole)).seconds / 2
    split = estimate(wanted(train=whole["train"] | {"shard_weights": True}), world=4)
    less = estimate(wanted(**whole), world=4).memory_bytes - split.memory_bytes
    assert less == 5 * split.parameters, "16 bytes a weight become 8 + 12 / 4"
    budget = {"train": {"max_seconds": 3.0}}
    assert estimate(wanted(**budget)).seconds == 3.0


def test_a_slow_machine_is_not_probed_for_long(wanted: Any) -> None:
    assert estimate(wanted(), tick=31.0).passes == 1


def test_the_probe_leaves_the_model_as_it_was(wanted: Any) -> None:
    model = new_model(make_plan(wanted()))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    estimate(wanted(), model=model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_intervals_follow_from_the_speed(wanted: Any) -> None:
    settings = wanted(
        train={
            "eval_steps": None,
            "save_steps": None,
            "max_steps": 400,
            "micro_batch_tokens": 10_000,
        }
    )
    found = resolve(settings, estimate(settings, tick=10.0)).train
    assert (found.eval_steps, found.save_steps) == (20, 15), "20 evaluations; 300 s are 15 steps"
    kept = resolve(wanted(), estimate(wanted())).train
    assert (kept.eval_steps, kept.save_steps) == (2, 2)


def test_a_source_without_examples_is_a_fault_of_the_program(wanted: Any) -> None:
    class Empty:
        def batch(self, step: int, progress: float, part: Any) -> None:
            del step, progress, part

    plan = make_plan(wanted())
    with pytest.raises(RuntimeError, match="the first step has no examples"):
        estimate_run(
            new_model(plan),
            plan.config,
            Empty(),  # type: ignore[arg-type]
            PretrainingLoss(wanted().objectives, seed=0),
            wanted(),
        )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89, "89 s"), (120, "2 min"), (7200, "2.0 h"), (172800, "2.0 days")],
)
def test_times_as_people_say_them(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
