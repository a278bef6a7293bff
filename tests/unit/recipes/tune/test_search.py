"""A whole search at the smallest size: trials, pruning, interruption, results, refusals."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")

from litebert.errors import (
    CheckpointError,
    MissingDependencyError,
    SettingsError,
    TrainingDiverged,
)
from litebert.recipes.finetune.job import open_run
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.loading import load
from litebert.recipes.tune import run as tune_run
from litebert.recipes.tune import trial as tune_trial
from litebert.recipes.tune.outcome import SearchOutcome
from litebert.recipes.tune.run import TrialEnded, TrialStarted, plan_search, run_search
from litebert.recipes.tune.settings import SearchSettings
from litebert.recipes.tune.store import TrialStore, best_of
from litebert.settings import build_settings, load_settings
from litebert.train.events import Evaluated, Stepped
from litebert.train.stop import StopRequest

WORDS = ("fine", "late", "dented")


def write(path: Path, rows: int = 48) -> Path:
    lines = [f"parcel number {i} was {WORDS[i % 3]},{WORDS[i % 3]}" for i in range(rows)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def settings(train: Path, **tune: Any) -> SearchSettings:
    values: dict[str, Any] = {
        "data": {"train": str(train)},
        "model": {
            "source": "tiny", "vocab_size": 64,
            "config": {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16},
        },
        "train": {"epochs": 2.0, "precision": "fp32", "threads": 1, "guard": {"enabled": False}},
        "has_baselines": False,
        "tune": {
            "trials": 3, "prune": False, "startup_trials": 2,
            "space": {"learning_rate": {"low": 1e-4, "high": 3e-2}, "batch_size": [8, 16]},
        } | tune,
    }  # fmt: skip
    return build_settings(SearchSettings, values)


def search(
    wanted: SearchSettings,
    out: Path,
    on_event: Callable[[Any], None] = lambda _: None,
    stop: StopRequest | None = None,
    timeout: float | None = None,
) -> SearchOutcome:
    return run_search(
        plan_search(wanted), out, command="litebert tune t.csv", on_event=on_event,
        stop=stop or StopRequest(), timeout=timeout,
    )  # fmt: skip


def scores(outcome: SearchOutcome) -> list[tuple[str, float | None, dict[str, Any]]]:
    return [(record.state, record.score, record.values) for record in outcome.records]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[SearchOutcome, Path, list[Any]]:
    place = tmp_path_factory.mktemp("search")
    events: list[Any] = []
    outcome = search(settings(write(place / "t.csv")), place / "out", events.append)
    return outcome, place / "out", events


def test_trials_are_ordinary_runs_and_the_best_keeps_its_model(
    finished: tuple[SearchOutcome, Path, list[Any]],
) -> None:
    outcome, out, events = finished
    assert [record.state for record in outcome.records] == ["done"] * 3
    started = [event for event in events if isinstance(event, TrialStarted)]
    assert [(event.count, event.total) for event in started] == [(0, 3), (1, 3), (2, 3)]
    best = outcome.best
    assert best is not None
    assert best.score == max(record.score or 0 for record in outcome.records)
    assert next(e.is_best for e in events if isinstance(e, TrialEnded))
    for record in outcome.records:
        folder, own = open_run(out / "trials" / record.folder)
        assert own.train.learning_rate == record.values["learning_rate"]
        assert own.train.batch_size == record.values["batch_size"]
        saved = json.loads((folder.path / "scores.json").read_text())
        assert saved["score"][outcome.metric] == pytest.approx(record.score)
        assert (folder.path / "metrics.jsonl").stat().st_size > 0
        assert not (folder.path / "checkpoints").exists()
        assert (folder.path / "model-best").exists() == (record.number == best.number)
        assert len(record.evaluations) == 2 and record.seconds > 0
    assert (out / "trials" / best.folder / "report.html").exists()
    assert load(out / "trials" / best.folder).predict("parcel was late")[0].label in WORDS


def test_the_result_as_files(finished: tuple[SearchOutcome, Path, list[Any]]) -> None:
    outcome, out, _ = finished
    table = json.loads((out / "tune.json").read_text())
    assert table["format_version"] == 1 and len(table["trials"]) == 3
    best = outcome.best
    assert best is not None and table["best"] == best.number
    assert table["best_values"] == best.values
    for name in ("history", "settings"):
        assert (out / "plots" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
    again = make_plan(load_settings(FinetuneSettings, out / "best.toml"))
    assert again.settings.train.learning_rate == best.values["learning_rate"]
    assert again.num_seeds == 3  # the median of several seeds is what to believe
    text = "\n".join(outcome.lines())
    assert "learning_rate" in text and f"best      trial {best.number}" in text
    assert "the best of 3 scores on the same" in text


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without reports and plots, which take longer than the smallest training."""
    monkeypatch.setattr(tune_trial, "finish_run", lambda outcome, folder: None)
    monkeypatch.setattr(tune_run, "draw_search", lambda outcome: {})


@pytest.mark.usefixtures("plain")
def test_the_same_search_again_adds_nothing_and_more_trials_go_on(
    finished: tuple[SearchOutcome, Path, list[Any]], tmp_path: Path
) -> None:
    outcome, out, _ = finished
    copy = tmp_path / "out"
    shutil.copytree(out, copy)
    wanted = settings(out.parent / "t.csv")
    events: list[Any] = []
    again = search(wanted, copy, events.append)
    assert scores(again) == scores(outcome) and events == []
    more = search(settings(out.parent / "t.csv", trials=4), copy)
    assert scores(more)[:3] == scores(outcome) and len(more.records) == 4


@pytest.mark.usefixtures("plain")
def test_an_interrupted_search_ends_like_one_that_was_not(
    finished: tuple[SearchOutcome, Path, list[Any]], tmp_path: Path
) -> None:
    outcome, out, _ = finished
    wanted, place = settings(out.parent / "t.csv"), tmp_path / "out"
    stop = StopRequest()
    seen: list[Any] = []

    def on_event(event: Any) -> None:
        seen.append(event)
        trials = sum(isinstance(e, TrialStarted) for e in seen)
        if trials == 2 and isinstance(event, Stepped) and event.step == 4:
            stop.request(15)

    cut = search(wanted, place, on_event, stop)
    assert cut.signal == 15 and len(cut.records) == 1
    resumed: list[Any] = []
    whole = search(wanted, place, resumed.append)
    first = next(event for event in resumed if isinstance(event, TrialStarted))
    assert first.trial.is_continued and first.trial.folder == "0001"
    steps = [event.step for event in resumed if isinstance(event, Stepped)]
    assert steps[0] > 1  # from the saved state, not from the start
    assert scores(whole) == scores(outcome)
    assert [r.evaluations for r in whole.records] == [r.evaluations for r in outcome.records]


@pytest.mark.usefixtures("plain")
def test_the_time_limit_interrupts_and_says_so(tmp_path: Path) -> None:
    wanted = settings(write(tmp_path / "t.csv"), trials=2)
    outcome = search(wanted, tmp_path / "out", timeout=0.0)
    assert outcome.signal == 0 and outcome.records == () and outcome.best is None
    assert "no trial has finished" in "\n".join(outcome.lines())
    assert not (tmp_path / "out" / "best.toml").exists()


@pytest.mark.usefixtures("plain")
def test_another_search_is_not_mixed_in(
    finished: tuple[SearchOutcome, Path, list[Any]], tmp_path: Path
) -> None:
    _, out, _ = finished
    train = out.parent / "t.csv"
    with pytest.raises(SettingsError, match=r"tune.space = .*cannot be compared"):
        search(settings(train, space={"batch_size": [8, 16]}), out)
    with pytest.raises(SettingsError, match=r"tune.seed = 0, now it is 7"):
        search(settings(train, seed=7), out)
    other = settings(train)
    other = other.model_copy(update={"data": other.data.model_copy(update={"max_length": 16})})
    with pytest.raises(SettingsError, match=r"data.max_length = None, now it is 16"):
        search(other, out)
    copy = tmp_path / "out"
    shutil.copytree(out, copy)
    changed = write(tmp_path / "t.csv", rows=51)
    with pytest.raises(SettingsError, match=r"data.train = "):
        search(settings(changed), copy)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(SettingsError, match="no folder of a search"):
        search(settings(train), tmp_path / "full")
    with pytest.raises(SettingsError, match="no folder of a search"):
        search(settings(train), tmp_path / "full" / "letter.txt")


@pytest.mark.usefixtures("plain")
def test_changed_data_are_noticed(
    finished: tuple[SearchOutcome, Path, list[Any]], tmp_path: Path
) -> None:
    train = write(tmp_path / "t.csv")
    search(settings(train, trials=1), tmp_path / "out", timeout=0.0)
    train.write_text(train.read_text().replace("parcel", "letter"))
    with pytest.raises(SettingsError, match="content of the data files"):
        search(settings(train, trials=1), tmp_path / "out")


@pytest.mark.usefixtures("plain")
def test_a_damaged_record_is_one_line(
    finished: tuple[SearchOutcome, Path, list[Any]], tmp_path: Path
) -> None:
    _, out, _ = finished
    copy = tmp_path / "out"
    shutil.copytree(out, copy)
    for junk in (b"not a database at all" * 50, (out / "trials.db").read_bytes()[:5000]):
        (copy / "trials.db").write_bytes(junk)
        with pytest.raises(CheckpointError, match="the record of the trials cannot be used"):
            search(settings(out.parent / "t.csv"), copy)


@pytest.mark.usefixtures("plain")
def test_settings_that_diverge_are_recorded_and_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tune_trial.run_plan

    def run_plan(plan: Any, *arguments: Any, **options: Any) -> Any:
        if plan.settings.train.batch_size == 16:
            raise TrainingDiverged("the loss is not a finite number", step=3)
        return real(plan, *arguments, **options)

    monkeypatch.setattr(tune_trial, "run_plan", run_plan)
    wanted = settings(write(tmp_path / "t.csv"), trials=4, space={"batch_size": [8, 16]})
    outcome = search(wanted, tmp_path / "out")
    states = {record.values["batch_size"]: record.state for record in outcome.records}
    assert states[16] == "failed" and len(outcome.records) == 4
    assert any("failed    step 3: the loss is not" in line for line in outcome.lines())
    if 8 in states:
        assert outcome.best is not None and outcome.best.values["batch_size"] == 8


@pytest.mark.usefixtures("plain")
def test_hopeless_trials_are_ended_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []
    monkeypatch.setattr(TrialStore, "report", lambda self, trial, number, score: number >= 1)
    outcome = search(settings(write(tmp_path / "t.csv"), trials=1), tmp_path / "out", events.append)
    assert [record.state for record in outcome.records] == ["pruned"]
    assert sum(isinstance(event, Evaluated) for event in events) == 1
    assert not (tmp_path / "out" / "trials" / "0000" / "checkpoints").exists()
    assert (tmp_path / "out" / "trials" / "0000" / "metrics.jsonl").stat().st_size > 0


def store(path: Path, sign: float = 1.0, warmup: int | None = 1) -> TrialStore:
    return TrialStore(path, seed=3, startup_trials=2, sign=sign, warmup=warmup)


def space() -> Any:
    from litebert.recipes.tune.space import read_space

    return read_space(
        {
            "dropout": {"low": 0.0, "high": 0.5},
            "depth": {"low": 1, "high": 4},
            "sharing": ["a", "b"],
        }
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_median_decides_after_the_warm_up(tmp_path: Path, sign: float) -> None:
    trials = store(tmp_path / "t.db", sign)
    for value in (0.6, 0.7, 0.8, 0.9):
        trial = trials.next(space())
        for number in (1, 2, 3):
            assert not trials.report(trial, number, sign * (value + number / 100))
        trials.tell(trial, sign * value, 1.0)
    poor = trials.next(space())
    assert not trials.report(poor, 1, sign * 0.1)  # warm-up
    assert trials.report(poor, 2, sign * 0.1)
    trials.tell(poor, None, 2.0)
    last = trials.ended()[-1]
    assert (last.state, last.score) == ("pruned", sign * 0.1)
    best = best_of(trials.ended(), sign)
    assert best is not None and best.score == sign * 0.9
    unknown = trials.next(space())
    assert trials.report(unknown, 2, float("nan"))
    trials.tell(unknown, float("nan"), 2.0, "the score is not a number")
    assert trials.ended()[-1].state == "failed" and trials.ended()[-1].score is None
    assert trials.importances().keys() <= {"dropout", "depth", "sharing"}


def test_choices_do_not_depend_on_interruptions(tmp_path: Path) -> None:
    def values(path: Path, *, reopened: bool) -> list[dict[str, Any]]:
        trials, chosen = store(path), []
        for number in range(6):
            if reopened:
                trials = store(path)
                if number == 3:
                    trials.next(space())  # a process that is killed here
                    trials = store(path)
                    assert trials.requeue() == 1
            trial = trials.next(space())
            assert trial.is_continued == (reopened and number == 3)
            chosen.append(trial.values)
            trials.tell(trial, trial.values["dropout"] * 2.0, 1.0)  # type: ignore[operator]
        assert all(isinstance(row["depth"], int) and 1 <= row["depth"] <= 4 for row in chosen)
        return chosen

    whole = values(tmp_path / "a.db", reopened=False)
    assert values(tmp_path / "b.db", reopened=True) == whole
    assert len({row["dropout"] for row in whole}) == 6


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependencyError, match=r"litebert\[tune\]") as caught:
        store(tmp_path / "t.db")
    assert caught.value.extra == "tune"
