from __future__ import annotations

import importlib.util
import logging
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litebert.errors import MissingDependencyError, SettingsError
from litebert.train.trackers import TRACKERS, TrackedRun, Trackers, numbers

PACKAGES = {
    "tensorboard": "torch.utils.tensorboard",
    "wandb": "wandb",
    "mlflow": "mlflow",
    "trackio": "trackio",
}
TRAIN = {
    "kind": "train",
    "step": 10,
    "loss": 2.5,
    "terms": {"mlm": 2.0, "sop": 0.5},
    "grad_norm": math.inf,
    "is_best": True,
    "message": "words",
    "timing": {"tokens_per_second": 100},
}
NUMBERS = {
    "train/loss": 2.5,
    "train/terms/mlm": 2.0,
    "train/terms/sop": 0.5,
    "train/timing/tokens_per_second": 100.0,
}
WORDS = {"kind": "warning", "step": 11, "message": "disk full", "timing": {}}


class Calls:
    """Remembers what was called on it; it stands for a module and for what its calls return."""

    def __init__(self) -> None:
        self.made: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.results: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.made.append((name, args, kwargs))
            result = self.results.get(name, self)
            if isinstance(result, Exception):
                raise result
            return result

        return call

    def of(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, kwargs) for called, args, kwargs in self.made if called == name]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Every tracker package is replaced by one recorder."""
    recorder = Calls()
    recorder.results["set_experiment"] = SimpleNamespace(experiment_id="7")
    recorder.results["search_runs"] = []
    for module in PACKAGES.values():
        monkeypatch.setitem(sys.modules, module, recorder)
    return recorder


def run_in(folder: Path, **values: Any) -> TrackedRun:
    return TrackedRun(folder=folder, settings={"seed": 1, "guard": {"enabled": True}}, **values)


def test_the_numbers_of_a_line() -> None:
    assert numbers(TRAIN) == NUMBERS
    assert numbers(WORDS) == {}


def test_every_tracker_is_tested_here() -> None:
    assert set(TRACKERS) == set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_line_reaches_the_package_and_the_end_too(
    name: str, calls: Calls, tmp_path: Path
) -> None:
    trackers = Trackers([name], run_in(tmp_path))
    before = len(calls.made)
    trackers.log(TRAIN)
    trackers.log(WORDS)
    sent = calls.made[before:]
    if name == "tensorboard":
        assert {args for _, args, _ in sent} == {(key, v, 10) for key, v in NUMBERS.items()}
    elif name == "wandb":
        assert sent == [("log", ({**NUMBERS, "step": 10},), {})]
    else:
        assert [(args, kwargs) for _, args, kwargs in sent] == [((NUMBERS,), {"step": 10})]
    trackers.close()
    assert calls.made[-1][0] in ("close", "finish", "end_run")
    trackers.log(TRAIN)
    trackers.close()
    assert len(calls.of("close") + calls.of("finish") + calls.of("end_run")) == 1


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_is_not_installed_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(MissingDependencyError, match=rf"'{name}', which is not installed"):
        Trackers([name], run_in(tmp_path))


def test_an_unknown_tracker_is_refused_before_any_starts(calls: Calls, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="did you mean 'wandb'"):
        Trackers(["trackio", "wandbb"], run_in(tmp_path))
    assert not calls.made


def test_a_missing_package_closes_the_trackers_before_it(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependencyError):
        Trackers(["trackio", "mlflow"], run_in(tmp_path))
    assert len(calls.of("finish")) == 1


def test_a_resumed_run_is_the_same_run(calls: Calls, tmp_path: Path) -> None:
    run = run_in(tmp_path / "a", step=30)
    assert run.title == "a"
    assert run.key == run_in(tmp_path / "b" / ".." / "a").key != run_in(tmp_path / "b").key
    assert run_in(tmp_path, name="mine").title == "mine"
    Trackers(["tensorboard", "wandb", "trackio"], run)
    assert calls.of("SummaryWriter")[0][1]["purge_step"] == 30
    first, second = (kwargs for _, kwargs in calls.of("init"))
    assert (first["id"], first["resume"]) == (run.key, "allow")
    assert (second["name"], second["resume"]) == (f"a-{run.key[:6]}", "allow")


def test_mlflow_finds_its_run_again(calls: Calls, tmp_path: Path) -> None:
    Trackers(["mlflow"], run_in(tmp_path))
    assert calls.of("start_run")[0][1]["run_id"] is None
    assert calls.of("log_params") == [(({"seed": "1", "guard.enabled": "True"},), {})]
    calls.results["search_runs"] = [SimpleNamespace(info=SimpleNamespace(run_id="r9"))]
    Trackers(["mlflow"], run_in(tmp_path, step=5))
    assert calls.of("start_run")[1][1]["run_id"] == "r9"
    assert len(calls.of("log_params")) == 1
    assert run_in(tmp_path).key in calls.of("search_runs")[1][1]["filter_string"]


def test_a_tracker_that_fails_costs_one_warning_and_is_left_out_in_the_end(
    calls: Calls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trackers = Trackers(["trackio", "mlflow"], run_in(tmp_path))
    calls.results["log"] = ConnectionError("no network")
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            trackers.log(TRAIN)
    assert len(calls.of("log")) == 3
    assert len(calls.of("log_metrics")) == 5
    assert [r.message for r in caplog.records] == [
        "tracker 'trackio' failed (ConnectionError: no network); training goes on, "
        "metrics.jsonl has every line"
    ]


def test_a_success_between_makes_failures_start_anew(calls: Calls, tmp_path: Path) -> None:
    trackers = Trackers(["trackio"], run_in(tmp_path))
    for result in (OSError(), OSError(), None) * 3:
        calls.results["log"] = result
        trackers.log(TRAIN)
    assert len(calls.of("log")) == 9


def test_a_start_and_an_end_that_fail_are_survived(
    calls: Calls, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    calls.results["init"] = RuntimeError("who are you?")
    calls.results["end_run"] = OSError("gone")
    with caplog.at_level(logging.WARNING):
        trackers = Trackers(["wandb", "mlflow"], run_in(tmp_path))
        trackers.log(TRAIN)
        trackers.close()
    assert [record.args[0] for record in caplog.records] == ["wandb", "mlflow"]  # type: ignore[index]
    assert len(calls.of("log_metrics")) == 1


def test_a_tracker_outside_the_project_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outside_tracker.py").write_text(
        "seen = []\n"
        "class Tracker:\n"
        "    def __init__(self, run):\n"
        "        print('welcome to the outside')\n"
        "        self.log = seen.append\n"
        "    def close(self): seen.append('end')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(TRACKERS, "_items", dict(TRACKERS._items))
    trackers = Trackers(["outside_tracker:Tracker"], run_in(tmp_path))
    trackers.log(TRAIN)
    trackers.close()
    assert sys.modules["outside_tracker"].seen == [TRAIN, "end"]
    assert capsys.readouterr() == ("", "welcome to the outside\n")


@pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="tensorboard is not installed"
)
def test_the_real_tensorboard_writes_event_files(tmp_path: Path) -> None:
    trackers = Trackers(["tensorboard"], run_in(tmp_path))
    trackers.log(TRAIN)
    trackers.close()
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert b"train/terms/mlm" in events.read_bytes()
