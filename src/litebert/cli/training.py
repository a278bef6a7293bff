"""What `train` and `quickstart` share: settings, the question, the run, and what a person sees of it."""

from __future__ import annotations

import shlex
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer

from litebert.cli.output import is_interactive, say, show
from litebert.cli.progress import Progress
from litebert.errors import SettingsError

if TYPE_CHECKING:
    from litebert.recipes.finetune.outcome import Outcome
    from litebert.recipes.run_folder import RunFolder
    from litebert.settings import Settings

__all__ = ["TrainingRequest", "refuse_undecodable", "run_training", "settings_of"]

LOG: Final = "log.txt"
S = TypeVar("S", bound="Settings")


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
    from litebert.checkpoint.fs import StorageError
    from litebert.recipes.finetune.job import finish_run, open_run, start_run
    from litebert.recipes.finetune.run import run_plan
    from litebert.recipes.finetune.same_run import require_same_data
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.recipes.finetune.work import make_plan
    from litebert.recipes.run_folder import clear_unfinished_start, require_free, resume_command
    from litebert.train.stop import stop_on_signals

    if request.resume is not None:
        folder, settings = open_run(request.resume)
        if request.out is not None or _is_told(request):
            raise SettingsError(
                "--resume continues a run as it was; give no other settings with it"
            )
    else:
        refuse_undecodable(request)
        folder, settings = None, settings_of(request, FinetuneSettings)
        if request.out is not None:
            clear_unfinished_start(request.out)
            require_free(request.out)
    plan = make_plan(settings)
    if folder is not None:
        require_same_data(folder, plan)
    if request.dry_run:
        show("\n".join([*plan.describe(), *plan.estimate()]))
        return None
    say("\n".join(plan.describe()))
    is_asked = request.resume is None and request.ask and is_interactive()
    if is_asked and not typer.confirm("Train?", default=True, err=True):
        return None
    if folder is None:
        folder = start_run(plan, request.out, command_line())
    try:
        log = folder.path / LOG
        with stop_on_signals() as stop, Progress(plan.task.metric, log) as progress:
            outcome = run_plan(
                plan, folder, on_event=progress, stop=stop, resume=request.resume is not None
            )
        if not outcome.is_interrupted:
            finish_run(outcome, folder)
    except (KeyboardInterrupt, OSError, StorageError):
        say(f"the run so far is kept; continue with: {resume_command(folder.path)}")
        raise
    if outcome.is_interrupted:
        say(f"stopped; continue with: {resume_command(folder.path)}")
        raise typer.Exit(128 + (outcome.signal or signal.SIGTERM))
    show_result(outcome, folder)
    return outcome, folder


def show_result(outcome: Outcome, folder: RunFolder) -> None:
    """Print the scores beside their baselines, the verdict, and what to do next."""
    from litebert.recipes.finetune.job import result_lines

    show("\n".join(result_lines(outcome, folder)))


def command_line() -> str:
    """Return the command as it could be typed again."""
    return shlex.join(["litebert", *sys.argv[1:]])


def settings_of(request: TrainingRequest, kind: type[S]) -> S:
    """Return the settings that were asked for: file, then command line, then `--set`.

    Raises:
        SettingsError: unknown key, wrong value.
    """
    from litebert.settings import build_settings, read_toml

    values: dict[str, Any] = read_toml(request.config) if request.config else {}
    for section, table in request.told.items():
        known = {key: value for key, value in table.items() if value is not None}
        if not section:
            values |= known
        elif known:
            values[section] = values.get(section, {}) | known
    return build_settings(kind, values, path=request.config, overrides=request.overrides)


def refuse_undecodable(request: TrainingRequest) -> None:
    """Refuse names that the files of a run could not hold, before time is spent on training."""
    told = [value for table in request.told.values() for value in table.values()]
    for text in (*map(str, told), *request.overrides, str(request.out)):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise SettingsError(
                f"{text.encode('utf-8', 'backslashreplace').decode()} is not UTF-8; "
                "rename it, or set PYTHONUTF8=1 if the name is right"
            ) from error


def _is_told(request: TrainingRequest) -> bool:
    return bool(request.overrides or request.config) or any(
        value is not None for table in request.told.values() for value in table.values()
    )
