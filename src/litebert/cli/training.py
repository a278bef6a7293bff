"""What `train` and `quickstart` share: settings, the question, the run, and what a person sees of it."""

from __future__ import annotations

import shlex
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from litebert.cli.progress import Progress
from litebert.errors import SettingsError

if TYPE_CHECKING:
    from litebert.recipes.finetune.outcome import Outcome
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.recipes.run_folder import RunFolder

__all__ = ["TrainingRequest", "run_training"]


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """What was asked for on the command line.

    Attributes:
        told: section -> key -> value; None means not told; section "" is the top.
        overrides: `section.key=value` strings.
        config: settings file, over which `told` goes.
        out: run folder.
        resume: run folder to continue.
        ask: whether to ask before training, on a terminal.
        dry_run: whether to stop after the plan.
    """

    told: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    overrides: tuple[str, ...] = ()
    config: Path | None = None
    out: Path | None = None
    resume: Path | None = None
    ask: bool = True
    dry_run: bool = False


def run_training(request: TrainingRequest) -> tuple[Outcome, RunFolder] | None:
    """Plan, ask, train, report; None after a dry run or a no.

    Raises:
        LitebertError: as the recipe.
        Exit: with 128 + signal after an interruption.
    """
    from litebert.recipes.finetune.job import finish_run, open_run, start_run
    from litebert.recipes.finetune.plan import make_plan
    from litebert.recipes.finetune.run import run_plan
    from litebert.train.stop import stop_on_signals

    if request.resume is not None:
        folder, settings = open_run(request.resume)
        if request.out is not None or _is_told(request):
            raise SettingsError(
                "--resume continues a run as it was; give no other settings with it"
            )
    else:
        folder, settings = None, _settings(request)
    plan = make_plan(settings)
    for line in plan.describe():
        typer.echo(line, err=True)
    if request.dry_run:
        for line in plan.estimate():
            typer.echo(line, err=True)
        return None
    is_asked = request.resume is None and request.ask and _is_terminal()
    if is_asked and not typer.confirm("Train?", default=True, err=True):
        return None
    if folder is None:
        folder = start_run(plan, request.out, command_line())
    with stop_on_signals() as stop, Progress(plan.task.metric) as progress:
        outcome = run_plan(
            plan, folder, on_event=progress, stop=stop, resume=request.resume is not None
        )
    if outcome.is_interrupted:
        typer.echo(
            f"stopped; continue with: litebert train --resume {shlex.quote(str(folder.path))}",
            err=True,
        )
        raise typer.Exit(128 + (outcome.signal or signal.SIGTERM))
    finish_run(outcome, folder)
    show_result(outcome, folder)
    return outcome, folder


def show_result(outcome: Outcome, folder: RunFolder) -> None:
    """Print the scores beside their baselines, the verdict, and what to do next."""
    from litebert.recipes.finetune.job import result_lines

    for line in result_lines(outcome, folder):
        typer.echo(line)


def command_line() -> str:
    """Return the command as it could be typed again."""
    return shlex.join(["litebert", *sys.argv[1:]])


def _settings(request: TrainingRequest) -> FinetuneSettings:
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.settings import build_settings, read_toml

    values: dict[str, Any] = read_toml(request.config) if request.config else {}
    for section, table in request.told.items():
        known = {key: value for key, value in table.items() if value is not None}
        if not section:
            values |= known
        elif known:
            values[section] = values.get(section, {}) | known
    return build_settings(
        FinetuneSettings, values, path=request.config, overrides=request.overrides
    )


def _is_told(request: TrainingRequest) -> bool:
    return bool(request.overrides or request.config) or any(
        value is not None for table in request.told.values() for value in table.values()
    )


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
