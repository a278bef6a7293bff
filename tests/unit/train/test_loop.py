from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import litebert.train.loop as loop_module
from litebert.checkpoint.faults import FaultyFS
from litebert.checkpoint.fs import StorageError, use_fs
from litebert.checkpoint.state import StateStore
from litebert.data.batch import EncodedExample
from litebert.errors import CheckpointError, DataError, SettingsError, TrainingDiverged
from litebert.model.losses import LossTerm
from litebert.train.evaluate import Evaluation, Evaluator
from litebert.train.events import (
    Evaluated,
    Event,
    Found,
    RolledBack,
    Saved,
    Started,
    Stepped,
    Warned,
)
from litebert.train.loop import fit
from litebert.train.plan import StepPlan
from litebert.train.settings import GuardSettings, TrainSettings
from litebert.train.source import ExampleSource
from litebert.train.state import FitResult, TrainState
from litebert.train.stop import StopRequest
from litebert.train.trackers import TRACKERS

MICRO_ATOL = 1e-6
"""float32 sums in another order, over a few updates."""


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    assert a.keys() == b.keys()
    for name in a:
        assert torch.equal(a[name], b[name]), name


def lines(folder: Path) -> list[dict[str, Any]]:
    """What two equal runs must have in common: everything but the clock."""
    parsed = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in parsed:
        assert "timing" in line
        del line["timing"]
    return parsed


def stop_at(step: int, stop: StopRequest) -> Callable[[Event], None]:
    def on_event(event: Event) -> None:
        if isinstance(event, Stepped) and event.step == step:
            stop.request(15)

    return on_event


def test_it_learns_and_tells(
    tiny: Any, make_examples: Any, evaluator: Evaluator, settings: TrainSettings, tmp_path: Path
) -> None:
    events: list[Event] = []
    result = fit(
        tiny(),
        make_examples(80),
        settings.model_copy(update={"epochs": 6, "learning_rate": 0.05}),
        evaluate=evaluator,
        state_dir=tmp_path,
        on_event=events.append,
    )
    assert result.status == "finished" and result.exit_code == 0
    assert result.step == 60 and result.epoch == 6
    assert result.best_score is not None and result.best_score > 0.8
    assert isinstance(events[0], Saved) and isinstance(events[1], Started)
    steps = [event for event in events if isinstance(event, Stepped)]
    assert [event.step for event in steps] == list(range(1, 61))
    assert all(event.eta_seconds >= 0 and event.rss_bytes > 0 for event in steps)
    assert steps[-1].loss < steps[0].loss
    assert [e.step for e in events if isinstance(e, Evaluated)] == list(range(10, 61, 10))
    log = lines(tmp_path)
    assert [line["step"] for line in log if line["kind"] == "train"] == list(range(3, 61, 3))
    assert [line["step"] for line in log if line["kind"] == "eval"] == list(range(10, 61, 10))
    tokens = sum(len(example) for example in make_examples(80))
    assert result.tokens_seen == 6 * tokens == log[-2]["tokens_seen"]
    best = result.best_step
    assert StateStore(tmp_path / "checkpoints").steps() == sorted({best, 50, 60})


def test_model_ends_with_the_best_weights(
    tiny: Any, make_examples: Any, scores: Any, settings: TrainSettings
) -> None:
    seen: dict[int, dict[str, Tensor]] = {}
    model = tiny()

    def on_event(event: Event) -> None:
        if isinstance(event, Evaluated):
            seen[event.step] = weights(model)

    result = fit(model, make_examples(40), settings, evaluate=scores(1, 3, 2), on_event=on_event)
    assert (result.best_step, result.best_score, result.step) == (10, 3, 15)
    assert_same(weights(model), seen[10])
    assert result.last_weights is not None
    assert_same(result.last_weights, seen[15])
    assert not model.training
    last = settings.model_copy(update={"load_best": False})
    result = fit(model, make_examples(40), last, evaluate=scores(1, 3, 2), on_event=on_event)
    assert result.last_weights is None
    assert_same(weights(model), seen[15])


def test_early_stopping_counts_evaluations_without_gain(
    tiny: Any, make_examples: Any, scores: Any, settings: TrainSettings
) -> None:
    patient = settings.model_copy(update={"patience": 2, "epochs": 9, "min_delta": 0.1})
    result = fit(
        tiny(), make_examples(40), patient, evaluate=scores(0.5, math.nan, 0.9, 0.95, 0.9, 7.0)
    )
    assert (result.status, result.step, result.best_step) == ("early_stopped", 25, 15)


@pytest.mark.parametrize("correct", [True, False])
def test_resume_at_every_step_is_bit_for_bit(
    tiny: Any,
    make_examples: Any,
    evaluator: Evaluator,
    settings: TrainSettings,
    tmp_path: Path,
    correct: bool,
) -> None:
    """Stopped after step n, for every n, mid-epoch and at its end, with evaluations and dropout."""
    settings = settings.model_copy(
        update={"epochs": 2.5, "eval_steps": 3, "save_steps": 4, "bias_correction": correct}
    )
    data = make_examples(36)
    whole = tiny()
    expected = fit(whole, data, settings, evaluate=evaluator, state_dir=tmp_path / "whole")
    assert expected.step == 13
    for n in range(1, 13) if correct else (2, 6, 11):
        folder, stop = tmp_path / str(n), StopRequest()
        first = fit(
            tiny(),
            data,
            settings,
            evaluate=evaluator,
            state_dir=folder,
            stop=stop,
            on_event=stop_at(n, stop),
        )
        assert (first.status, first.exit_code, first.saved_step) == ("interrupted", 143, n)
        torch.manual_seed(n)  # a new process has other random numbers
        model = tiny(seed=99)
        result = fit(model, data, settings, evaluate=evaluator, state_dir=folder, resume=True)
        assert_same(weights(model), weights(whole))
        assert lines(folder) == lines(tmp_path / "whole")
        for name in ("status", "best_step", "best_score", "best_metrics", "tokens_seen"):
            assert getattr(result, name) == getattr(expected, name)


def test_interrupted_evaluation_is_done_after_resuming(
    tiny: Any, make_examples: Any, evaluator: Evaluator, settings: TrainSettings, tmp_path: Path
) -> None:
    data = make_examples(40)
    expected = fit(tiny(), data, settings, evaluate=evaluator, state_dir=tmp_path / "whole")
    stop, calls = StopRequest(), [0]

    def interrupted(model: nn.Module, request: StopRequest) -> Evaluation | None:
        calls[0] += 1
        if calls[0] == 2:
            request.request(2)
        return evaluator(model, request)

    folder = tmp_path / "cut"
    first = fit(tiny(), data, settings, evaluate=interrupted, state_dir=folder, stop=stop)
    assert (first.status, first.step, first.exit_code, calls) == ("interrupted", 10, 130, [2])
    result = fit(tiny(), data, settings, evaluate=evaluator, state_dir=folder, resume=True)
    assert lines(folder) == lines(tmp_path / "whole")
    assert result.best_score == expected.best_score


def test_a_finished_run_resumes_to_the_same_result(
    tiny: Any, make_examples: Any, evaluator: Evaluator, settings: TrainSettings, tmp_path: Path
) -> None:
    data, first, second = make_examples(40), tiny(), tiny(seed=5)
    a = fit(first, data, settings, evaluate=evaluator, state_dir=tmp_path)
    b = fit(second, data, settings, evaluate=evaluator, state_dir=tmp_path, resume=True)
    assert_same(weights(first), weights(second))
    assert (a.status, a.step, a.best_metrics) == (b.status, b.step, b.best_metrics)


def test_equal_seeds_give_equal_files_and_evaluations_change_nothing(
    tiny: Any, make_examples: Any, evaluator: Evaluator, settings: TrainSettings, tmp_path: Path
) -> None:
    data = make_examples(40)
    models = [tiny() for _ in range(4)]
    fit(models[0], data, settings, evaluate=evaluator, state_dir=tmp_path / "a")
    np.random.seed(77)
    torch.manual_seed(77)
    fit(models[1], data, settings, evaluate=evaluator, state_dir=tmp_path / "b")
    assert lines(tmp_path / "a") == lines(tmp_path / "b")
    last = settings.model_copy(update={"load_best": False})
    fit(models[0], data, last, evaluate=evaluator)
    fit(models[1], data, last.model_copy(update={"eval_steps": 2}), evaluate=evaluator)
    fit(models[2], data, last)
    other = last.model_copy(update={"seed": 1})
    fit(models[3], data, other)
    assert not torch.equal(models[2].embedding.weight, models[3].embedding.weight)


def test_training_does_not_depend_on_evaluation_and_saving(
    tiny: Any, make_examples: Any, evaluator: Evaluator, settings: TrainSettings, tmp_path: Path
) -> None:
    data, last = make_examples(40), settings.model_copy(update={"load_best": False})
    plain, busy = tiny(), tiny()
    fit(plain, data, last)
    often = last.model_copy(update={"eval_steps": 1, "save_steps": 1})
    fit(busy, data, often, evaluate=evaluator, state_dir=tmp_path)
    assert_same(weights(plain), weights(busy))


def test_micro_batches_change_only_rounding(
    tiny: Any, make_examples: Any, settings: TrainSettings
) -> None:
    data, models = make_examples(40), [tiny(dropout=0.0) for _ in range(2)]
    for model, tokens in zip(models, (10_000, 13), strict=True):
        fit(model, data, settings.model_copy(update={"micro_batch_tokens": tokens}))
    for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=MICRO_ATOL, rtol=0)


def test_out_of_memory_halves_the_pass_and_repeats_the_step(
    tiny: Any, make_examples: Any, settings: TrainSettings, tmp_path: Path
) -> None:
    sizes: list[int] = []

    class Small(tiny):
        limit = 30

        def forward_packed(self, input_ids: Any, *rest: Any, labels: Any = None) -> Any:
            sizes.append(len(input_ids))
            if len(input_ids) > self.limit:
                raise MemoryError("no more")
            return super().forward_packed(input_ids, *rest, labels=labels)

    data, events = make_examples(40), []
    model, reference = Small(dropout=0.0), tiny(dropout=0.0)
    result = fit(model, data, settings, state_dir=tmp_path, on_event=events.append)
    assert result.status == "finished" and result.step == 15
    fit(reference, data, settings)
    for a, b in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=MICRO_ATOL, rtol=0)
    warnings = [event.message for event in events if isinstance(event, Warned)]
    assert 1 <= len(warnings) <= 3 and "out of memory" in warnings[0]
    assert max(sizes[-20:]) <= 30, "the lower limit stays"
    saved = StateStore(tmp_path / "checkpoints").load_latest()
    assert saved is not None
    assert saved.scalars["state"]["micro_batch_tokens"] <= 30

    Small.limit = 3
    with pytest.raises(SettingsError, match="too small for one example"):
        fit(Small(), data, settings)


def test_other_runtime_errors_are_not_swallowed(
    tiny: Any, make_examples: Any, settings: TrainSettings
) -> None:
    class Broken(tiny):
        def forward_packed(self, *rest: Any, labels: Any = None) -> Any:
            raise RuntimeError("shape mismatch")

    with pytest.raises(RuntimeError, match="shape mismatch"):
        fit(Broken(), make_examples(8), settings)


class Poisoned:
    """Makes a model whose loss is not a number for certain calls of its training."""

    def __init__(self, tiny: Any, bad: Callable[[int], bool]) -> None:
        self.calls = 0
        outer = self

        class Model(tiny):
            def forward_packed(self, *rest: Any, labels: Any = None) -> Any:
                output = super().forward_packed(*rest, labels=labels)
                if self.training and output.loss is not None:
                    outer.calls += 1
                    if bad(outer.calls):
                        output.loss = output.loss * math.nan
                return output

        self.model = Model()


def test_one_bad_batch_is_skipped_and_counted(
    tiny: Any, make_examples: Any, settings: TrainSettings, tmp_path: Path
) -> None:
    poisoned = Poisoned(tiny, lambda call: call == 4)
    events: list[Event] = []
    result = fit(
        poisoned.model,
        make_examples(40),
        settings,
        state_dir=tmp_path,
        on_event=events.append,
    )
    assert (result.status, result.skipped_steps, result.rollbacks) == ("finished", 1, 0)
    (found,) = [event.finding for event in events if isinstance(event, Found)]
    assert (found.kind, found.step, found.is_confirmed) == ("non_finite", 3, False)
    assert len(str(found.evidence["examples"]).split(",")) == 8
    assert all(torch.isfinite(p).all() for p in poisoned.model.parameters())
    kinds = [line["kind"] for line in lines(tmp_path)]
    assert kinds.count("guard") == 1
    assert result.findings == (found,)


@pytest.mark.parametrize("on_disk", [True, False])
def test_bad_steps_in_a_row_go_back_with_half_the_rate(
    tiny: Any, make_examples: Any, settings: TrainSettings, tmp_path: Path, on_disk: bool
) -> None:
    poisoned = Poisoned(tiny, lambda call: 8 <= call <= 11)  # steps 7-10, once
    events: list[Event] = []
    result = fit(
        poisoned.model,
        make_examples(40),
        settings.model_copy(update={"schedule": "constant", "warmup_fraction": 0.0}),
        state_dir=tmp_path if on_disk else None,
        on_event=events.append,
    )
    assert (result.status, result.step) == ("finished", 15)
    assert (result.skipped_steps, result.rollbacks) == (4, 1)
    assert [event for event in events if isinstance(event, RolledBack)] == [RolledBack(10, 5, 0.5)]
    steps = [(e.step, e.learning_rate) for e in events if isinstance(e, Stepped)]
    assert steps[:10] == [(i, 0.01) for i in range(1, 11)]
    assert steps[10:] == [(i, 0.005) for i in range(6, 16)]


def test_lasting_badness_stops_with_evidence(
    tiny: Any, make_examples: Any, settings: TrainSettings, tmp_path: Path
) -> None:
    poisoned = Poisoned(tiny, lambda call: call > 6)
    with pytest.raises(TrainingDiverged, match="not a finite number") as caught:
        fit(poisoned.model, make_examples(40), settings, state_dir=tmp_path)
    assert caught.value.exit_code == 70
    assert caught.value.evidence["rollbacks"] == 4
    assert str(caught.value.evidence["examples"]).count(",") == 7
    assert StateStore(tmp_path / "checkpoints").load_latest() is not None


def test_weights_that_are_not_numbers(
    tiny: Any, make_examples: Any, settings: TrainSettings
) -> None:
    model = tiny()
    with torch.no_grad():
        model.classifier.bias[0] = math.nan
    with pytest.raises(TrainingDiverged):
        fit(model, make_examples(40), settings)


def constant(model: nn.Module, stop: StopRequest) -> Evaluation:
    labels = np.arange(40) % 2
    return Evaluation(0.5, {"accuracy": 0.5}, np.tile([1.0, 0.0], (40, 1)), labels)


def test_collapse_stops_the_run(tiny: Any, make_examples: Any, settings: TrainSettings) -> None:
    quick = GuardSettings(chance_steps=10)
    settings = settings.model_copy(update={"epochs": 10, "guard": quick})
    events: list[Event] = []
    with pytest.raises(TrainingDiverged, match="every answer is class 0") as caught:
        fit(tiny(), make_examples(40), settings, evaluate=constant, on_event=events.append)
    assert caught.value.step == 25, "at half of the schedule"
    first = next(event.finding for event in events if isinstance(event, Found))
    assert first.step == 5, "flagged by the first evaluation"
    warn = settings.model_copy(update={"guard": GuardSettings(on_collapse="warn", chance_steps=10)})
    result = fit(tiny(), make_examples(40), warn, evaluate=constant)
    assert (result.status, result.is_collapsed) == ("finished", True)
    off = settings.model_copy(update={"guard": GuardSettings(enabled=False)})
    assert fit(tiny(), make_examples(40), off, evaluate=constant).findings == ()


def test_collapse_seen_only_at_the_end_is_a_result_not_an_error(
    tiny: Any, make_examples: Any, settings: TrainSettings
) -> None:
    late = GuardSettings(chance_steps=10, min_progress_fraction=1.0)
    for epochs, is_collapsed in ((1, False), (4, True)):  # 5 and 20 steps
        changed = settings.model_copy(update={"epochs": epochs, "guard": late})
        result = fit(tiny(), make_examples(40), changed, evaluate=constant)
        assert (result.status, result.is_collapsed) == ("finished", is_collapsed)


def test_collapse_after_learning_keeps_the_best_weights(
    tiny: Any, make_examples: Any, evaluator: Evaluator, settings: TrainSettings
) -> None:
    calls: list[int] = []

    def evaluate(model: nn.Module, stop: StopRequest) -> Evaluation | None:
        calls.append(1)
        return evaluator(model, stop) if len(calls) <= 4 else constant(model, stop)

    settings = settings.model_copy(
        update={"epochs": 30, "learning_rate": 0.05, "guard": GuardSettings(chance_steps=10)}
    )
    result = fit(tiny(), make_examples(40), settings, evaluate=evaluate)
    assert result.status == "early_stopped"
    assert not result.is_collapsed
    assert result.step < 150
    assert result.best_step in (5, 10, 15, 20)


def test_time_budget_ends_with_a_finished_schedule(
    tiny: Any, make_examples: Any, settings: TrainSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]

    def monotonic() -> float:
        clock[0] += 0.01
        return clock[0]

    monkeypatch.setattr(loop_module.time, "monotonic", monotonic)
    events: list[Event] = []
    budget = settings.model_copy(update={"epochs": 1000, "max_seconds": 2.0})
    result = fit(tiny(), make_examples(40), budget, on_event=events.append)
    assert result.status == "time_up"
    rates = [event.learning_rate for event in events if isinstance(event, Stepped)]
    assert 10 < len(rates) < 200
    assert max(rates) > 0.008
    assert rates[-1] < 0.001, "the rate came down to the end"
    assert all(e.eta_seconds <= 2.0 for e in events if isinstance(e, Stepped))


def test_wall_clock_jumps_do_not_matter(
    tiny: Any, make_examples: Any, settings: TrainSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = iter(range(10**6))

    def jumping() -> float:
        return 1e9 + (3e7 if next(offsets) % 2 else -3e7)

    monkeypatch.setattr(time, "time", jumping)
    events: list[Event] = []
    result = fit(tiny(), make_examples(20), settings, on_event=events.append)
    assert 0 < result.seconds < 60
    assert all(0 <= e.eta_seconds < 60 for e in events if isinstance(e, Stepped))


def test_full_disk_while_training_costs_warnings_only(
    tiny: Any, make_examples: Any, settings: TrainSettings, tmp_path: Path
) -> None:
    """Every write fails for a while, wherever the fault begins."""
    data, expected = make_examples(24), tiny()
    settings = settings.model_copy(update={"save_steps": 2, "log_steps": 1, "epochs": 2})
    fit(expected, data, settings)
    first: list[int] = []
    with use_fs(FaultyFS()) as recording:

        def on_saved(event: Event) -> None:
            if isinstance(event, Saved):
                first.append(len(recording.operations))

        fit(tiny(), data, settings, state_dir=tmp_path / "recording", on_event=on_saved)
    reached_end = False
    start = first[0] + 1
    while not reached_end:
        folder, model = tmp_path / str(start), tiny()
        events: list[Event] = []
        shim = FaultyFS(start, times=9)
        with use_fs(shim):
            result = fit(model, data, settings, state_dir=folder, on_event=events.append)
        reached_end = len(shim.operations) < start
        assert result.status == "finished"
        assert_same(weights(model), weights(expected))
        assert StateStore(folder / "checkpoints").load_latest() is not None
        start += 7
    assert start > first[-1]


def test_disk_full_at_the_start_is_refused(
    tiny: Any, make_examples: Any, settings: TrainSettings, tmp_path: Path
) -> None:
    with use_fs(FaultyFS(free_bytes=100)), pytest.raises(StorageError, match="needed") as caught:
        fit(tiny(), make_examples(8), settings, state_dir=tmp_path)
    assert caught.value.exit_code == 74


def test_resume_refuses_other_data_settings_and_models(
    tiny: Any, make_examples: Any, settings: TrainSettings, tmp_path: Path
) -> None:
    data = make_examples(40)

    def again(**options: Any) -> FitResult:
        values: dict[str, Any] = {"model": tiny(), "data": data, "settings": settings, **options}
        return fit(state_dir=tmp_path, resume=True, **values)

    fit(tiny(), data, settings, state_dir=tmp_path)
    with pytest.raises(CheckpointError, match="resume it, or choose another folder"):
        fit(tiny(), data, settings, state_dir=tmp_path)
    changed = settings.model_copy(update={"learning_rate": 0.5, "batch_size": 9})
    with pytest.raises(
        CheckpointError, match=r"batch_size was 8, is 9; learning_rate was 0.01, is 0.5"
    ):
        again(settings=changed)
    again(settings=settings.model_copy(update={"log_steps": 1, "keep_states": 5}))
    other = [*data[:-1], EncodedExample(data[-1].ids + 1, data[-1].type_ids, 0, 39)]
    with pytest.raises(CheckpointError, match="other data"):
        again(data=other)
    with pytest.raises(CheckpointError, match="do not fit the model"):
        again(model=tiny(classes=5))


def test_a_state_of_another_version_is_refused() -> None:
    values = {**asdict(TrainState()), "nothing": 1}
    with pytest.raises(CheckpointError, match="does not fit this version: nothing"):
        TrainState.from_json(values)


def test_wrong_input(tiny: Any, make_examples: Any, settings: TrainSettings) -> None:
    with pytest.raises(DataError, match="nothing to train on"):
        fit(tiny(), [], settings)
    ids = np.array([1], np.int32)
    with pytest.raises(DataError, match="no labels"):
        fit(tiny(), [EncodedExample(ids, ids * 0, None, 0)], settings)
    with pytest.raises(SettingsError, match="gradient_checkpointing"):
        fit(
            tiny(),
            make_examples(8),
            settings.model_copy(update={"gradient_checkpointing": True}),
        )


def test_an_event_callback_that_raises_ends_the_run_and_frees_the_lock(
    tiny: Any, make_examples: Any, settings: TrainSettings, tmp_path: Path
) -> None:
    class Enough(Exception):  # noqa: N818
        pass

    def on_event(event: Event) -> None:
        if isinstance(event, Stepped):
            raise Enough

    with pytest.raises(Enough):
        fit(tiny(), make_examples(8), settings, state_dir=tmp_path, on_event=on_event)
    fit(tiny(), make_examples(8), settings, state_dir=tmp_path, resume=True)


def test_own_loss(tiny: Any, make_examples: Any, settings: TrainSettings) -> None:
    class Shrink:
        """Distillation and pretraining bring their own loss; here: no answer at all."""

        weights: ClassVar = {"size": 2.0}

        def counts(self, batch: Any) -> dict[str, int]:
            return {"size": batch.num_sequences}

        def __call__(self, model: Any, batch: Any) -> tuple[LossTerm, ...]:
            output = model.forward_packed(
                batch.input_ids, batch.packing, batch.token_type_ids, batch.position_ids
            )
            count = torch.tensor(batch.packing.num_sequences)
            return (LossTerm("size", output.logits.square().mean() * count, count),)

    events: list[Event] = []
    fit(
        tiny(),
        make_examples(40),
        settings.model_copy(update={"epochs": 10}),
        step_loss=Shrink(),
        on_event=events.append,
    )
    losses = [event.loss for event in events if isinstance(event, Stepped)]
    assert losses[-1] < losses[0] / 5
    assert not [event for event in events if isinstance(event, Found)]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_short_number_types_train_too(
    tiny: Any, make_examples: Any, evaluator: Evaluator, settings: TrainSettings, precision: str
) -> None:
    short = settings.model_copy(update={"precision": precision, "epochs": 6, "learning_rate": 0.05})
    model = tiny()
    result = fit(model, make_examples(80), short, evaluate=evaluator)
    assert result.best_score is not None and result.best_score > 0.8
    assert model.embedding.weight.dtype == torch.float32
    assert result.rollbacks == 0


def test_plan_is_arithmetic(make_examples: Any, settings: TrainSettings) -> None:
    source, late = (ExampleSource(make_examples(20), settings) for _ in range(2))
    plan = StepPlan(source, settings)
    assert (source.steps_per_epoch, plan.total_steps, plan.eval_steps) == (3, 9, 3)
    seen = [source.examples_of(step).tolist() for step in range(9)]
    assert late.examples_of(7).tolist() == seen[7]
    for epoch in range(3):
        assert sorted(chain(*seen[3 * epoch : 3 * epoch + 3])) == list(range(20))
    assert seen[:3] != seen[3:6]
    assert len({plan.seed_of(step) for step in range(1000)}) == 1000
    assert all(0 <= plan.seed_of(step) < 2**63 for step in range(100))
    part = StepPlan(source, settings.model_copy(update={"epochs": 0.01}))
    assert part.total_steps == 1
    fixed = StepPlan(source, settings.model_copy(update={"max_steps": 5, "save_steps": 2}))
    assert (fixed.total_steps, fixed.save_steps) == (5, 2)


def test_trackers_get_the_lines_of_the_log(
    tiny: Any,
    make_examples: Any,
    settings: TrainSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Notes:
        lines: ClassVar[list[dict[str, Any]]] = []
        is_closed = False

        def __init__(self, run: Any) -> None:
            assert (run.folder, run.project, run.step) == (tmp_path, "mine", 0)

        def log(self, record: dict[str, Any]) -> None:
            Notes.lines.append(record)

        def close(self) -> None:
            Notes.is_closed = True

    monkeypatch.setitem(TRACKERS._items, "notes", Notes)  # gone after this test
    tracked = settings.model_copy(update={"trackers": ("notes",), "tracker_project": "mine"})
    fit(tiny(), make_examples(20), tracked, state_dir=tmp_path)
    written = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [line["step"] for line in Notes.lines] == [json.loads(line)["step"] for line in written]
    assert Notes.is_closed


def test_rate_follows_the_batch_size(make_examples: Any, settings: TrainSettings) -> None:
    scaled = settings.model_copy(
        update={"lr_scaling": "sqrt", "lr_reference_batch_size": 4 * settings.batch_size}
    )
    plans = [StepPlan(ExampleSource(make_examples(20), s), s) for s in (settings, scaled)]
    assert plans[1].learning_rate(0.5) == pytest.approx(plans[0].learning_rate(0.5) / 2)
