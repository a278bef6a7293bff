"""Go through the tasks of GLUE one by one: train, score, keep the result; a failure stops only its task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litebert.checkpoint.fs import StorageError
from litebert.errors import LitebertError, SettingsError
from litebert.model.presets import PRESETS
from litebert.recipes.finetune.job import finish_run, open_run, start_run
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.same_run import require_same_data
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.start_choice import AUTO, SCRATCH
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.glue.entries import FROM_MNLI, GlueEntry, choose_entries, find_folder
from litebert.recipes.glue.job import GlueJob, TaskResult, official, read_result, write_result
from litebert.recipes.model_source import source_folder
from litebert.recipes.run_folder import RunFolder, clear_unfinished_start
from litebert.settings import build_settings

if TYPE_CHECKING:
    from litebert.recipes.finetune.outcome import Outcome
    from litebert.recipes.finetune.run import OnRunEvent
    from litebert.recipes.finetune.work import AnyPlan
    from litebert.train.stop import StopRequest

__all__ = [
    "Interrupted", "Watch", "describe_tasks", "require_tasks", "run_tasks", "task_settings",
]  # fmt: skip

LOG: Final = "log.txt"

Watch = Callable[[str, Path], AbstractContextManager["OnRunEvent"]]
"""(main metric, log file) -> something that is told what happens while it is open."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A signal stopped the run; the same command goes on."""

    signal: int | None


def task_settings(job: GlueJob, entry: GlueEntry, folder: Path, model: str) -> FinetuneSettings:
    """Return the settings of the training of one task.

    Raises:
        SettingsError: an override that does not fit.
    """
    train = {"epochs": job.epochs, "max_seconds": job.max_seconds}
    data = {
        "train": str(folder),
        "task": f"glue/{entry.key}",
        "max_examples": job.max_examples,
        "on_bad_row": "skip",  # QQP as published has broken rows
    }
    whole = {
        "num_seeds": job.seeds,
        "recipe": f"paper/{entry.key}" if job.is_paper else None,
    }
    return build_settings(
        FinetuneSettings,
        {key: value for key, value in whole.items() if value is not None}
        | {
            "data": {key: value for key, value in data.items() if value is not None},
            "model": {"source": model},
            "train": {key: value for key, value in train.items() if value is not None},
            "has_baselines": job.has_baselines,
        },
        overrides=job.overrides,
    )


def require_tasks(job: GlueJob, out: Path) -> None:
    """Refuse what no task could be trained with, before a folder is made.

    Raises:
        SettingsError: no such task or setting, or no task to train.
        DataError: `data` is no folder.
        CheckpointError: there is no such model.
    """
    entries = choose_entries(job.tasks)
    found = [(entry, find_folder(job.data, entry.title)) for entry in entries]
    there = [(entry, folder) for entry, folder in found if folder and not _missing(folder, entry)]
    if not there:
        names = ", ".join(entry.title for entry in entries)
        raise SettingsError(f"nothing to train on in {job.data}: no train.tsv for any of {names}")
    left = [pair for pair in there if read_result(out / pair[0].key) is None]
    for entry, folder in left:
        task_settings(job, entry, folder, job.model)
    if left and job.model not in (AUTO, SCRATCH, *PRESETS):
        source_folder(job.model, words=(AUTO, SCRATCH))


def describe_tasks(job: GlueJob, out: Path) -> Iterator[str]:
    """Yield what would be done, task by task, as lines; nothing is trained or written.

    Raises:
        LitebertError: as the plan of a task.
    """
    for entry in choose_entries(job.tasks):
        folder = find_folder(job.data, entry.title)
        reason = _missing(folder, entry)
        yield f"{entry.title}{f': left out, {reason}' if reason else ''}"
        if folder is None or reason:
            continue
        if read_result(out / entry.key) is not None:
            yield "  finished already, kept"
            continue
        plan = make_plan(task_settings(job, entry, folder, job.model))
        yield from (f"  {line}" for line in (*plan.describe(), *plan.estimate()))


def run_tasks(
    job: GlueJob, out: Path, *, watch: Watch, tell: Tell, stop: StopRequest, command: str
) -> list[TaskResult] | Interrupted:
    """Train and score every chosen task; what has finished before is kept.

    Args:
        job: what was asked for.
        out: folder of the run; each task gets a run folder of its own in it.
        watch: shows the progress of a training.
        tell: takes lines for a person.
        stop: asks for an early end.
        command: as it could be typed again.

    Raises:
        LitebertError: as `require_tasks`; what is wrong with one task only is in its result.
    """
    results: list[TaskResult] = []
    for entry in choose_entries(job.tasks):
        folder = find_folder(job.data, entry.title)
        reason = _missing(folder, entry)
        if folder is None or reason:
            results.append(TaskResult(entry.key, "left out", reason))
            continue
        kept = read_result(out / entry.key)
        if kept is not None:
            tell(f"{entry.title:<9} finished before, kept")
            results.append(kept)
            continue
        tell(f"\n{entry.title}")
        try:
            result = _run_task(job, entry, folder, out, watch, tell, stop, command)
        except StorageError:
            raise  # a full disk stops every task
        except LitebertError as error:
            # One task that diverges or has damaged files must not cost the others.
            tell(f"failed    {error}")
            results.append(TaskResult(entry.key, "failed", str(error)))
            continue
        if isinstance(result, Interrupted):
            return result
        results.append(result)
    return results


def _missing(folder: Path | None, entry: GlueEntry) -> str:
    """Say why a task cannot be trained, "" if it can."""
    if folder is None:
        return f"there is no folder {entry.title}"
    return "" if (folder / "train.tsv").is_file() else f"{entry.title} has no train.tsv"


def _run_task(
    job: GlueJob,
    entry: GlueEntry,
    data: Path,
    out: Path,
    watch: Watch,
    tell: Tell,
    stop: StopRequest,
    command: str,
) -> TaskResult | Interrupted:
    start = time.monotonic()
    path = out / entry.key
    model, origin = _start_of(job, entry, out)
    is_new = not (path / "config.toml").exists()
    if is_new:
        settings = task_settings(job, entry, data, model)
        plan = make_plan(settings)
        clear_unfinished_start(path)
        folder = start_run(plan, path, command)
    else:
        folder, settings = open_run(path)
        plan = make_plan(_with_budget(settings, job))
        require_same_data(folder, plan)
        tell("          goes on where it stopped")
    tell("\n".join(plan.describe()))
    with watch(plan.task.metric, path / LOG) as on_event:
        outcome = run_plan(plan, folder, on_event=on_event, stop=stop, resume=not is_new)
    if outcome.is_interrupted:
        return Interrupted(outcome.signal)
    finish_run(outcome, folder)
    result = _result(entry, plan, outcome)
    result = replace(result, start=origin, seconds=time.monotonic() - start)
    write_result(path, result)
    return result


def _with_budget(settings: FinetuneSettings, job: GlueJob) -> FinetuneSettings:
    """Return stored settings with the time that is told now."""
    if job.max_seconds is None:
        return settings
    train = settings.train.model_copy(update={"max_seconds": job.max_seconds})
    return settings.model_copy(update={"train": train})


def _start_of(job: GlueJob, entry: GlueEntry, out: Path) -> tuple[str, str]:
    """Return the model that a task starts from, and what to call it."""
    if job.from_mnli and entry.key in FROM_MNLI:
        best = RunFolder(out / "mnli").best
        if read_result(out / "mnli") is not None and best.is_dir():
            return str(best), "the model of MNLI"
        return job.model, f"{job.model} (there is no model of MNLI in this run)"
    return job.model, job.model


def _result(entry: GlueEntry, plan: AnyPlan, outcome: Outcome) -> TaskResult:
    chosen = outcome.chosen
    scores: dict[str, float] = {} if chosen is None else official(entry, chosen.scores)
    notes = [entry.note, *outcome.faults]
    skipped: tuple[Any, ...] = plan.skipped
    if skipped:
        notes.append(f"{len(skipped):,} unusable rows left out, first line {skipped[0].line}")
    failed = sum(bool(seed.failure) for seed in outcome.seeds)
    if failed:
        notes.append(f"{failed} of {len(outcome.seeds)} seeds failed")
    if plan.parts()[1][2] is None:
        notes.append("no dev.tsv, scored on a part of train.tsv")
    if "accuracy_mismatched" in entry.metrics and "accuracy_mismatched" not in scores:
        notes.append("no dev_mismatched.tsv, matched only")
    return TaskResult(
        entry.key,
        "finished",
        "; ".join(note for note in notes if note),
        scores,
        [official(entry, seed.scores) for seed in outcome.seeds if seed.scores],
        {baseline.name: official(entry, baseline.scores) for baseline in outcome.baselines},
        len(plan.train.examples),
        len(plan.eval.examples),
    )
