"""The mean of weights: by definition, in evaluations, in results, and through interruptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from litebert.data.batch import EncodedExample
from litebert.errors import CheckpointError, SettingsError
from litebert.train.averaging import WeightAverage
from litebert.train.evaluate import Evaluation, Evaluator
from litebert.train.events import Event, Stepped
from litebert.train.loop import fit
from litebert.train.settings import AveragingSettings, TrainSettings
from litebert.train.stop import StopRequest

RTOL, ATOL = 1e-6, 1e-7
"""float32, one update after the other."""


def averaging(**options: Any) -> TrainSettings:
    return TrainSettings(averaging=AveragingSettings(**options))


def walk(average: WeightAverage, layer: nn.Linear, steps: int) -> list[torch.Tensor]:
    """Let the weights wander; return them after each step."""
    seen: list[torch.Tensor] = []
    for step in range(steps):
        with torch.no_grad():
            layer.weight.add_(torch.randn_like(layer.weight))
        average.update(step / steps)
        seen.append(layer.weight.detach().clone())
    return seen


def mean_of(average: WeightAverage, layer: nn.Linear) -> torch.Tensor:
    with average.in_place():
        return layer.weight.detach().clone()


def test_swa_is_the_plain_mean_since_the_start() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    average = WeightAverage(layer, averaging(kind="swa", start_fraction=0.3))
    seen = walk(average, layer, 10)
    expected = torch.stack(seen[3:]).double().mean(0).float()
    torch.testing.assert_close(mean_of(average, layer), expected, rtol=RTOL, atol=ATOL)
    assert average.count == 7
    assert torch.equal(layer.weight, seen[-1])


def test_swa_of_every_third_step() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    average = WeightAverage(layer, averaging(kind="swa", start_fraction=0.0, every_steps=3))
    seen = walk(average, layer, 8)
    expected = torch.stack([seen[0], seen[3], seen[6]]).mean(0)
    torch.testing.assert_close(mean_of(average, layer), expected, rtol=RTOL, atol=ATOL)


def test_ema_forgets_at_a_rate_that_rises() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    average = WeightAverage(layer, averaging(start_fraction=0.0, decay=0.3))
    seen = walk(average, layer, 6)
    mean = seen[0].double()
    for number, weights in enumerate(seen[1:], start=2):
        kept = min(0.3, number / (9 + number))
        mean = kept * mean + (1 - kept) * weights.double()
    torch.testing.assert_close(mean_of(average, layer), mean.float(), rtol=RTOL, atol=ATOL)


def test_before_it_begins_and_without_settings_there_is_nothing() -> None:
    layer = nn.Linear(3, 2)
    for settings in (TrainSettings(), averaging(start_fraction=0.9)):
        average = WeightAverage(layer, settings)
        average.update(0.5)
        assert average.count == 0
        assert torch.equal(mean_of(average, layer), layer.weight)
        average.install()


def test_frozen_weights_are_left_out() -> None:
    layer = nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    average = WeightAverage(layer, averaging(start_fraction=0.0))
    average.update(0.0)
    assert list(average.capture()[0]) == ["bias"]


def test_split_weights_are_refused() -> None:
    settings = TrainSettings(averaging=AveragingSettings(), shard_weights=True)
    with pytest.raises(SettingsError, match=r"choose one of the two"):
        WeightAverage(nn.Linear(1, 1), settings)


def test_a_mean_of_another_model_is_refused() -> None:
    average = WeightAverage(nn.Linear(3, 2), averaging(start_fraction=0.0))
    average.update(0.0)
    other = WeightAverage(nn.Linear(3, 3), averaging())
    with pytest.raises(CheckpointError, match="does not fit the model"):
        other.restore(*average.capture())
    other.restore({}, None)  # a state of an older version
    assert other.count == 0


@pytest.mark.parametrize("kind", ["ema", "swa"])
def test_what_is_evaluated_is_what_comes_out(
    tiny: Any, make_examples: Any, settings: TrainSettings, kind: Any
) -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def evaluate(model: nn.Module, stop: StopRequest) -> Evaluation:
        seen.append({n: t.clone() for n, t in model.state_dict().items()})
        return Evaluation(-float(len(seen) == 1), {"score": 0.0})

    wanted = settings.model_copy(
        update={"averaging": AveragingSettings(kind=kind, start_fraction=0.2), "load_best": False}
    )
    model = tiny()
    plain = tiny()
    fit(model, make_examples(80), wanted, evaluate=evaluate)
    fit(plain, make_examples(80), settings)
    last = model.state_dict()
    assert all(torch.equal(seen[-1][name], last[name]) for name in last)
    assert not torch.equal(last["embedding.weight"], plain.state_dict()["embedding.weight"])
    seen.clear()
    again = tiny()
    result = fit(
        again, make_examples(80), wanted.model_copy(update={"load_best": True}), evaluate=evaluate
    )
    best = again.state_dict()
    assert result.best_step == 20 and result.last_weights is not None
    assert all(torch.equal(seen[1][name], best[name]) for name in best)
    assert all(torch.equal(seen[-1][name], result.last_weights[name]) for name in best)


def test_training_itself_is_not_changed(
    tiny: Any, make_examples: Any, settings: TrainSettings
) -> None:
    losses: list[list[float]] = []
    for chosen in (None, AveragingSettings(start_fraction=0.0)):
        found: list[float] = []
        losses.append(found)

        def listen(event: Event, found: list[float] = found) -> None:
            if isinstance(event, Stepped):
                found.append(event.loss)

        wanted = settings.model_copy(update={"averaging": chosen, "log_steps": 1})
        fit(tiny(), make_examples(40), wanted, on_event=listen)
    assert losses[0] == losses[1] and losses[0]


@pytest.mark.parametrize("stop_step", [4, 10, 17, 20])
def test_a_stopped_run_goes_on_exactly(
    tiny: Any,
    make_examples: Any,
    evaluator: Evaluator,
    settings: TrainSettings,
    tmp_path: Path,
    stop_step: int,
) -> None:
    wanted = settings.model_copy(update={"averaging": AveragingSettings(start_fraction=0.3)})
    data: list[EncodedExample] = make_examples(80)
    whole = tiny()
    expected = fit(whole, data, wanted, evaluate=evaluator)
    stop = StopRequest()

    def listen(event: Event) -> None:
        if isinstance(event, Stepped) and event.step == stop_step:
            stop.request()

    first = fit(
        tiny(), data, wanted, evaluate=evaluator, state_dir=tmp_path, on_event=listen, stop=stop
    )
    assert first.status == "interrupted"
    model = tiny(seed=5)
    result = fit(model, data, wanted, evaluate=evaluator, state_dir=tmp_path, resume=True)
    assert result.best_metrics == expected.best_metrics
    assert result.best_step == expected.best_step
    for name, tensor in whole.state_dict().items():
        assert torch.equal(model.state_dict()[name], tensor), name
    finished = tiny(seed=6)
    fit(finished, data, wanted, evaluate=evaluator, state_dir=tmp_path, resume=True)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(finished.state_dict()[name], tensor), name
