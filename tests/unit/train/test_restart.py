from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from litebert.errors import CheckpointError, TrainingDiverged
from litebert.train.evaluate import Evaluation
from litebert.train.events import Event, Restarted, Stepped
from litebert.train.restart import fit_with_restarts, settings_of_attempt
from litebert.train.settings import GuardSettings, TrainSettings
from litebert.train.stop import StopRequest


@pytest.fixture
def allowed(settings: TrainSettings) -> TrainSettings:
    return settings.model_copy(
        update={"epochs": 8, "guard": GuardSettings(restarts=2, chance_steps=10)}
    )


class Collapsing:
    """Evaluations of a model that collapses in its first attempts; makes the models, too."""

    def __init__(self, tiny: Any, bad_attempts: int) -> None:
        self.tiny, self.bad_attempts = tiny, bad_attempts
        self.seeds: list[int] = []

    def make_model(self, seed: int) -> nn.Module:
        self.seeds.append(seed)
        return self.tiny(seed=seed)

    def evaluate(self, model: nn.Module, stop: StopRequest) -> Evaluation:
        labels = np.arange(40) % 2
        if len(self.seeds) <= self.bad_attempts:
            return Evaluation(0.5, {"accuracy": 0.5}, np.tile([1.0, 0.0], (40, 1)), labels)
        return Evaluation(0.9, {"accuracy": 0.9}, 3.0 * np.eye(2)[labels], labels)


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_collapsed_run_starts_again(
    tiny: Any, make_examples: Any, allowed: TrainSettings, tmp_path: Path, on_disk: bool
) -> None:
    case, events = Collapsing(tiny, 1), []
    model, result = fit_with_restarts(
        case.make_model,
        make_examples(40),
        allowed,
        evaluate=case.evaluate,
        state_dir=tmp_path if on_disk else None,
        on_event=events.append,
    )
    assert isinstance(model, tiny)
    assert result.status == "finished" and not result.is_collapsed
    assert case.seeds == [0, settings_of_attempt(allowed, 1).seed]
    (attempt,) = result.attempts
    assert (attempt["seed"], attempt["learning_rate"], attempt["step"]) == (0, 0.01, 20)
    assert "every answer is class 0" in attempt["reason"]
    (restart,) = [event for event in events if isinstance(event, Restarted)]
    assert (restart.attempt, restart.learning_rate) == (1, 0.005)
    if on_disk:
        assert json.loads((tmp_path / "attempts.json").read_text()) == [attempt]
        assert (tmp_path / "attempts" / "0" / "metrics.jsonl").exists()
        assert list((tmp_path / "attempts" / "0" / "checkpoints").glob("step-*"))
        assert list((tmp_path / "checkpoints").glob("step-*"))


def test_attempts_are_limited(tiny: Any, make_examples: Any, allowed: TrainSettings) -> None:
    case = Collapsing(tiny, 99)
    with pytest.raises(TrainingDiverged, match="class 0"):
        fit_with_restarts(case.make_model, make_examples(40), allowed, evaluate=case.evaluate)
    assert len(case.seeds) == len(set(case.seeds)) == 3


def test_collapse_seen_at_the_end_restarts_too_and_the_last_is_returned(
    tiny: Any, make_examples: Any, allowed: TrainSettings
) -> None:
    case = Collapsing(tiny, 99)
    late = allowed.guard.model_copy(update={"min_progress_fraction": 1.0})
    short = allowed.model_copy(update={"epochs": 4, "guard": late})
    _, result = fit_with_restarts(case.make_model, make_examples(40), short, evaluate=case.evaluate)
    assert result.is_collapsed and len(result.attempts) == 2


def test_a_run_of_few_steps_is_not_started_again(
    tiny: Any, make_examples: Any, settings: TrainSettings
) -> None:
    case = Collapsing(tiny, 99)
    short = settings.model_copy(update={"epochs": 1, "guard": GuardSettings(restarts=2)})
    _, result = fit_with_restarts(case.make_model, make_examples(24), short, evaluate=case.evaluate)
    assert (result.step, result.is_collapsed, result.attempts) == (3, False, ())


def test_interrupted_second_attempt_is_resumed(
    tiny: Any, make_examples: Any, allowed: TrainSettings, tmp_path: Path
) -> None:
    data = make_examples(40)
    whole = Collapsing(tiny, 1)
    expected_model, expected = fit_with_restarts(
        whole.make_model, data, allowed, evaluate=whole.evaluate, state_dir=tmp_path / "whole"
    )
    case, stop, attempts = Collapsing(tiny, 1), StopRequest(), [0]

    def on_event(event: Event) -> None:
        if isinstance(event, Restarted):
            attempts[0] = event.attempt
        if isinstance(event, Stepped) and attempts[0] and event.step == 7:
            stop.request(15)

    options: dict[str, Any] = {"evaluate": case.evaluate, "state_dir": tmp_path / "cut"}
    _, first = fit_with_restarts(
        case.make_model, data, allowed, stop=stop, on_event=on_event, **options
    )
    assert (first.status, first.step, len(first.attempts)) == ("interrupted", 7, 1)
    with pytest.raises(CheckpointError, match="collapsed attempts"):
        fit_with_restarts(case.make_model, data, allowed, **options)
    model, result = fit_with_restarts(case.make_model, data, allowed, resume=True, **options)
    assert case.seeds[1:] == [settings_of_attempt(allowed, 1).seed] * 2
    assert result.attempts == expected.attempts
    for a, b in zip(model.parameters(), expected_model.parameters(), strict=True):
        assert a.equal(b)
    (tmp_path / "cut" / "attempts.json").write_text("[")
    with pytest.raises(CheckpointError, match="cannot be read"):
        fit_with_restarts(case.make_model, data, allowed, resume=True, **options)


def test_a_folder_left_by_a_kill_while_moving_is_no_obstacle(
    tiny: Any, make_examples: Any, allowed: TrainSettings, tmp_path: Path
) -> None:
    (tmp_path / "attempts" / "0").mkdir(parents=True)
    case = Collapsing(tiny, 1)
    fit_with_restarts(
        case.make_model, make_examples(40), allowed, evaluate=case.evaluate, state_dir=tmp_path
    )
    assert (tmp_path / "attempts" / "1" / "checkpoints").is_dir()


def test_seeds_of_neighbouring_runs_do_not_meet(allowed: TrainSettings) -> None:
    seeds = {
        settings_of_attempt(allowed.model_copy(update={"seed": seed}), number).seed
        for seed in range(50)
        for number in range(4)
    }
    assert len(seeds) == 200
    rates = [settings_of_attempt(allowed, number).learning_rate for number in range(3)]
    assert rates == [0.01, 0.005, 0.0025]
