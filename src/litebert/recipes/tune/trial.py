"""One trial: an ordinary run over data that are read already, ended early where that pays."""

from __future__ import annotations

import json
import math
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litebert.errors import SettingsError, TrainingDiverged
from litebert.recipes.finetune.job import finish_run, joined_metrics, start_run
from litebert.recipes.finetune.run import RunEvent, SeedStarted, run_plan
from litebert.recipes.run_folder import RunFolder
from litebert.train.events import Evaluated

if TYPE_CHECKING:
    from litebert.recipes.finetune.work import AnyPlan
    from litebert.recipes.tune.store import LiveTrial, TrialStore
    from litebert.train.stop import StopRequest

__all__ = ["TRIALS", "run_trial", "tidy"]

TRIALS: Final = "trials"


class _PrunedError(Exception):
    """Unwinds a training that is not worth going on with; never leaves this module."""


class _Watch:
    """Passes the events of a run on, reports its evaluations, and ends it early."""

    def __init__(
        self,
        store: TrialStore,
        trial: LiveTrial,
        plan: AnyPlan,
        on_event: Callable[[RunEvent], None],
        seen: list[tuple[int, float]],
    ) -> None:
        self._store, self._trial, self._on_event = store, trial, on_event
        self._metric, self._first_seed = plan.task.metric, plan.settings.train.seed
        self._seed = self._first_seed
        self._steps: list[int] = []
        is_over = False
        for step, score in seen:
            is_over = self._report(step, score)
        if is_over:  # the process ended between the evaluation and what follows from it
            raise _PrunedError

    def __call__(self, event: RunEvent) -> None:
        self._on_event(event)
        if isinstance(event, SeedStarted):
            self._seed = event.seed
        is_first = self._seed == self._first_seed  # the others would be compared unfairly
        if isinstance(event, Evaluated) and is_first:
            should_end = self._report(event.step, event.metrics[self._metric])
            if should_end:
                raise _PrunedError

    def _report(self, step: int, score: float) -> bool:
        if step in self._steps:
            return False
        self._steps.append(step)
        return self._store.report(self._trial, len(self._steps), score)


def run_trial(
    plan: AnyPlan,
    out: Path,
    store: TrialStore,
    trial: LiveTrial,
    *,
    command: str,
    is_better: Callable[[float], bool],
    on_event: Callable[[RunEvent], None],
    stop: StopRequest,
) -> bool:
    """Run, score and record one trial; return False when it was interrupted and can go on.

    Args:
        plan: what to do.
        out: folder of the search.
        store: where the trial is recorded.
        trial: its settings and folder.
        command: command line, for the run folder.
        is_better: whether a score is the best so far; then model, report and card are kept.
        on_event: is told what happens in the run.
        stop: asks for an early end, after which the trial can go on.

    Raises:
        LitebertError: faults that no other settings would mend.
    """
    start = time.monotonic() - trial.seconds
    path = out / TRIALS / trial.folder
    is_resumed = trial.is_continued and (path / "config.toml").is_file()
    if path.exists() and not is_resumed:
        shutil.rmtree(path)  # a start that did not get far enough to be worth anything
    folder = RunFolder.open(path) if is_resumed else start_run(plan, path, command)
    first = folder.checkpoints(plan.settings.train.seed) / "metrics.jsonl"
    seen = _seen(first, plan.task.metric) if is_resumed else []
    score, note, seconds = None, "", None
    try:
        watch = _Watch(store, trial, plan, on_event, seen)
        outcome = run_plan(plan, folder, on_event=watch, stop=stop, resume=is_resumed)
    except _PrunedError:
        pass
    except (TrainingDiverged, SettingsError) as error:
        note = str(error)
    else:
        if outcome.is_interrupted:
            store.keep_time(trial, time.monotonic() - start)
            return False
        metric = plan.task.metric
        score = statistics.median(seed.scores[metric] for seed in outcome.seeds if seed.scores)
        seconds = time.monotonic() - start
        if is_better(score):
            finish_run(outcome, folder)
    seeds = range(plan.settings.train.seed, plan.settings.train.seed + plan.num_seeds)
    folder.write_text("metrics.jsonl", joined_metrics(folder, seeds))
    if score is not None and not math.isfinite(score):
        note = f"the score {plan.task.metric} is not a number"
    store.tell(trial, score, time.monotonic() - start if seconds is None else seconds, note)
    return True


def tidy(out: Path, folder: str, *, keep_model: bool) -> None:
    """Remove training states of an ended trial, and its models unless it is the best."""
    path = out / TRIALS / folder
    for name in ("checkpoints", *(() if keep_model else ("model-best", "model-last"))):
        if (path / name).is_dir():
            shutil.rmtree(path / name)


def _seen(metrics: Path, metric: str) -> list[tuple[int, float]]:
    """Return (step, score) of the evaluations before an interruption; a torn last line is left out."""
    found: list[tuple[int, float]] = []
    for line in metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else ():
        try:
            values = json.loads(line)
        except ValueError:
            break
        if values.get("kind") == "eval":
            found.append((int(values["step"]), float(values["metrics"][metric])))
    return found
