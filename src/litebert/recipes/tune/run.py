"""A search from its first trial to its last: choose, run, record, and say what was found."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from litebert.checkpoint.fs import make_folder, write_atomic
from litebert.checkpoint.lock import RunLock
from litebert.errors import MissingDependencyError, SettingsError
from litebert.recipes.figures import save_plots
from litebert.recipes.finetune.job import located
from litebert.recipes.finetune.paper import with_recipe
from litebert.recipes.finetune.run import BaselineScored, RunEvent
from litebert.recipes.finetune.work import make_plan, work_of
from litebert.recipes.tune.outcome import SearchOutcome
from litebert.recipes.tune.plots import draw_search
from litebert.recipes.tune.ranges import choose_space
from litebert.recipes.tune.settings import training_part
from litebert.recipes.tune.store import (
    LiveTrial,
    TrialRecord,
    TrialStore,
    best_of,
    require_optuna,
)
from litebert.recipes.tune.trial import run_trial, tidy
from litebert.recipes.tune.vary import check_space, varied
from litebert.settings import dump_toml
from litebert.tasks.baselines import Baseline

if TYPE_CHECKING:
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.recipes.finetune.work import AnyPlan
    from litebert.recipes.tune.settings import SearchSettings
    from litebert.recipes.tune.space import Dimension
    from litebert.train.stop import StopRequest

__all__ = ["Search", "TrialEnded", "TrialStarted", "plan_search", "run_search"]

DATABASE: Final = "trials.db"
BASELINES: Final = "baselines.json"
BEST: Final = "best.toml"
RESULT: Final = "tune.json"
LOCK: Final = "run.lock"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """A trial begins, or goes on."""

    trial: LiveTrial
    count: int
    """Trials that have ended before it."""
    total: int


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial is over."""

    record: TrialRecord
    is_best: bool


SearchEvent = RunEvent | TrialStarted | TrialEnded


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched, worked out before it starts.

    Attributes:
        settings: what was asked for.
        told: its training part.
        base: the plan with encoded data; each trial changes its settings.
        space: what varies.
    """

    settings: SearchSettings
    told: FinetuneSettings
    base: AnyPlan
    space: tuple[Dimension, ...]

    def describe(self) -> list[str]:
        """Return the plan in lines for a person."""
        tune = self.settings.tune
        return [
            *self.base.describe(),
            *(f"vary      {d.name}: {d.describe()}" for d in self.space),
            f"trials    {tune.trials:,}, the first {min(tune.trials, tune.startup_trials)} random"
            + (", ended early below the median" if tune.prune else ""),
        ]

    def estimate(self) -> list[str]:
        """Return the expected time of all trials, as lines for a person."""
        return [
            *self.base.estimate(),
            f"          that {self.settings.tune.trials:,} times at most; trials that differ in shape differ "
            "in time",
        ]


def plan_search(settings: SearchSettings) -> Search:
    """Read the data once, choose what varies, and try the ends of every range.

    Raises:
        DataError, CheckpointError: as `make_plan`.
        SettingsError: as `make_plan`, or a wrong space.
        MissingDependencyError: optuna is not installed.
    """
    require_optuna()
    told = with_recipe(training_part(settings))
    # Learning from pairs has rates of its own, on which trials would have no effect.
    told = told.model_copy(update={"few_shot": False})
    base = make_plan(told.model_copy(update={"num_seeds": told.num_seeds or 1}))
    space = choose_space(settings.tune, base, told)
    check_space(base, told, space)
    return Search(settings, told, base, space)


def run_search(
    search: Search,
    out: Path,
    *,
    command: str,
    on_event: Callable[[SearchEvent], None],
    stop: StopRequest,
    timeout: float | None = None,
) -> SearchOutcome:
    """Run trials until there are as many as wanted; what an earlier process did is kept.

    Args:
        search: what is searched.
        out: its folder; the same search goes on there.
        command: command line, for the run folders.
        on_event: is told what happens in the search and in each run.
        stop: asks for an early end.
        timeout: seconds of this call; the running trial is then interrupted and can go on later.

    Raises:
        SettingsError: the folder holds another search or something else.
        CheckpointError: another process searches there, or its record cannot be used.
        MissingDependencyError: optuna is not installed.
        LitebertError: faults that no other settings would mend.
    """
    _require_ours(out)
    make_folder(out)
    with RunLock(out / LOCK):
        return _Running(search, out, command, on_event, stop, timeout).to_the_end()


class _Running:
    def __init__(
        self,
        search: Search,
        out: Path,
        command: str,
        on_event: Callable[[SearchEvent], None],
        stop: StopRequest,
        timeout: float | None,
    ) -> None:
        self.search, self.out, self.command = search, out, command
        self.on_event, self.stop = on_event, stop
        self.deadline = math.inf if timeout is None else time.monotonic() + timeout
        self.work = work_of(search.base)
        self.sign = 1.0 if self.work.higher_is_better else -1.0
        self.tune = search.settings.tune
        self.store = TrialStore(
            out / DATABASE,
            seed=self.tune.seed,
            startup_trials=self.tune.startup_trials,
            sign=self.sign,
            warmup=self._warmup() if self.tune.prune else None,
        )

    def to_the_end(self) -> SearchOutcome:
        """Run what is missing, then draw and say what was found."""
        self._check_identity()
        baselines = self._baselines()
        self.store.requeue()
        self._tidy()
        while len(self.store.ended()) < self.tune.trials and not self._is_over():
            if not self._one_trial():
                break
            self._write(self._outcome(baselines))
        outcome = self._outcome(baselines)
        self._write(outcome)
        try:
            save_plots(draw_search(outcome), self.out / "plots")
        except MissingDependencyError as error:
            log.warning("the plots are left out: %s", error)
        return outcome

    def _one_trial(self) -> bool:
        trial = self.store.next(self.search.space)
        before = best_of(self.store.ended(), self.sign)
        count = len(self.store.ended())
        self.on_event(TrialStarted(trial, count, self.tune.trials))
        plan = varied(
            self.search.base, self.search.told, self.search.space, trial.values, for_trial=True
        )

        def is_better(score: float) -> bool:
            if before is None or before.score is None:
                return math.isfinite(score)
            return self.sign * score > self.sign * before.score

        is_done = run_trial(
            plan,
            self.out,
            self.store,
            trial,
            command=self.command,
            is_better=is_better,
            on_event=self._pass_on,
            stop=self.stop,
        )
        if not is_done:
            return False
        record = next(r for r in self.store.ended() if r.number == trial.number)
        is_best = record.state == "done" and record.score is not None and is_better(record.score)
        self.on_event(TrialEnded(record, is_best))
        self._tidy()
        return True

    def _pass_on(self, event: RunEvent) -> None:
        self.on_event(event)
        self._is_over()

    def _is_over(self) -> bool:
        if time.monotonic() >= self.deadline:
            self.stop.request()
        return self.stop.is_requested

    def _outcome(self, baselines: tuple[Baseline, ...]) -> SearchOutcome:
        return SearchOutcome(
            metric=self.search.base.task.metric,
            sign=self.sign,
            evaluated=len(self.search.base.eval.examples),
            space=self.search.space,
            records=tuple(self.store.ended()),
            wanted=self.tune.trials,
            baselines=baselines,
            importances=self.store.importances(),
            signal=self.stop.signal,
        )

    def _write(self, outcome: SearchOutcome) -> None:
        """Write `tune.json` and the best settings, so that a killed search has them too."""
        _write_json(self.out / RESULT, outcome.to_json())
        best = outcome.best
        if best is not None:
            plan = varied(self.search.base, self.search.told, self.search.space, best.values)
            write_atomic(self.out / BEST, dump_toml(located(plan.settings)).encode())

    def _tidy(self) -> None:
        records = self.store.ended()
        best = best_of(records, self.sign)
        for record in records:
            tidy(self.out, record.folder, keep_model=best is not None and record is best)

    def _warmup(self) -> int:
        """Evaluations in which no trial is ended early."""
        train = self.search.base.settings.train
        steps = self.search.base.num_steps
        if train.eval_steps is not None:
            evaluations = steps / train.eval_steps
        else:
            evaluations = steps * train.batch_size / max(1, len(self.search.base.train.encoded))
        return max(1, math.ceil(self.tune.prune_after_fraction * evaluations))

    def _baselines(self) -> tuple[Baseline, ...]:
        """Score the simple answers, once for all trials."""
        if not self.search.told.has_baselines:
            return ()
        path = self.out / BASELINES
        if path.exists():
            found = [Baseline(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
        else:
            found = list(self.work.baselines())
            rows = [
                {"name": b.name, "scores": b.scores, "method": b.method, "seconds": b.seconds}
                for b in found
            ]
            _write_json(path, rows)
        for baseline in found:
            self.on_event(BaselineScored(baseline))
        return tuple(found)

    def _check_identity(self) -> None:
        """Refuse to mix trials of different searches.

        Raises:
            SettingsError: the folder's search has other settings or data.
        """
        own = _identity(self.search)
        known = self.store.identity
        if not known:
            self.store.set_identity(own)
            write_atomic(self.out / "search.toml", dump_toml(self.search.settings).encode("utf-8"))
            return
        changed = [key for key in own if known.get(key) != own[key]]
        if changed:
            name = changed[0]
            raise SettingsError(
                f"{self.out} holds a search with {name} = {known.get(name)!r:.120}, now it is "
                f"{own[name]!r:.120}; trials that differ in this cannot be compared: choose another --out"
            )


def _identity(search: Search) -> dict[str, Any]:
    """What trials must have in common, by the names that a person knows."""
    settings = located(search.told).model_dump(mode="json", exclude={"num_seeds", "has_baselines"})
    flat: dict[str, Any] = {}
    for section, value in settings.items():
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            flat |= {f"{section}.{name}": item for name, item in table.items()}
        else:
            flat[section] = value
    for free in ("threads", "trackers", "tracker_project", "log_steps", "keep_states"):
        flat.pop(f"train.{free}", None)
    tune = search.settings.tune
    digests = [table.sha256 for _, _, table in search.base.parts() if table is not None]
    flat |= {
        "num_seeds": search.told.num_seeds or 1,
        "tune.seed": tune.seed,
        "tune.prune": tune.prune,
        "tune.space": [dimension.to_json() for dimension in search.space],
        "content of the data files": digests,
    }
    return json.loads(json.dumps(flat))


def _require_ours(out: Path) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    left = {entry.name for entry in out.iterdir()} if out.is_dir() else {out.name}
    if DATABASE not in left and left != {LOCK}:
        raise SettingsError(f"{out} exists and is no folder of a search; choose another --out")


def _write_json(path: Path, values: object) -> None:
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    write_atomic(path, text.encode("utf-8", errors="backslashreplace"))
