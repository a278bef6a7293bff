"""From settings to a run folder that is ready to train: a new one, or one that goes on."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.checkpoint.fs import make_folder
from litebert.errors import SettingsError
from litebert.recipes.durations import parse_duration
from litebert.recipes.pretrain.estimate import Estimate
from litebert.recipes.pretrain.job import located, open_run, start_run
from litebert.recipes.pretrain.plan import PretrainPlan, make_plan
from litebert.recipes.pretrain.run import estimate_plan, resolve
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.recipes.run_folder import (
    CONFIG,
    RunFolder,
    clear_unfinished_start,
    newest_folder,
    next_folder,
    require_free,
)
from litebert.settings import build_settings, read_toml
from litebert.train.ranks import ALONE, Ranks

__all__ = ["Session", "open_session", "preview", "read_settings"]


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """A run folder and what to do in it.

    Attributes:
        folder: the run folder.
        plan: the run, with every setting resolved.
        resume_command: goes on with it.
    """

    folder: RunFolder
    plan: PretrainPlan
    resume_command: str


def read_settings(
    config: Path, *, overrides: tuple[str, ...] = (), time_budget: str | None = None
) -> PretrainSettings:
    """Read a settings file, with overrides on top.

    Raises:
        SettingsError: file missing, unknown key, wrong value.
    """
    values: dict[str, Any] = read_toml(config)
    if time_budget is not None:
        overrides = (*overrides, f"train.max_seconds={parse_duration(time_budget)}")
    return located(build_settings(PretrainSettings, values, path=config, overrides=overrides))


def preview(settings: PretrainSettings) -> list[str]:
    """Return what a run would do and cost, measured; nothing is written."""
    plan = make_plan(settings)
    return [*plan.describe(), *estimate_plan(plan).describe()]


def open_session(
    settings: PretrainSettings,
    *,
    config: Path,
    out: Path | None,
    is_resume: bool,
    command: str,
    is_forced: bool = False,
    say: Callable[[str], None],
    ranks: Ranks = ALONE,
) -> Session:
    """Open the run folder, or create it after measuring what the run will cost.

    Args:
        settings: what was asked for.
        config: file it came from; names the run where `out` does not.
        out: run folder.
        is_resume: go on with the run that is there; without one, begin.
        command: the command line, for the record.
        is_forced: begin although memory seems too small.
        say: is told lines for people.
        ranks: the first one decides for all.

    Raises:
        SettingsError: `out` holds something and `is_resume` is False, or memory is too small.
        LitebertError: as `make_plan` and `open_run`.
    """
    found: dict[str, Any] = {}
    plan: PretrainPlan | None = None
    if ranks.is_first:
        path = out or _default_folder(config, is_resume)
        if is_resume and (path / CONFIG).exists():
            folder, settings = open_run(path, settings)
            plan = make_plan(settings, folder.path)
            say("\n".join(plan.describe()))
        else:
            if is_resume:
                clear_unfinished_start(path)
            _require_new(path, _resume_command(config, path))
            plan = make_plan(settings)
            say("\n".join(plan.describe()))
            with _made(path):
                estimate = estimate_plan(plan, world=ranks.world)
                say("\n".join(estimate.describe()))
                _check_memory(estimate, settings, is_forced)
                settings = resolve(settings, estimate)
            folder = start_run(make_plan(settings), path, config.stem, command)
            plan = make_plan(settings, folder.path)  # writes the chunks that the other ranks read
        found = {"path": str(folder.path), "settings": settings.model_dump(mode="json")}
    shared = ranks.share_state(({}, found), is_patient=True)
    found = found if shared is None else shared[1]
    path = Path(found["path"])
    if plan is None:
        plan = make_plan(build_settings(PretrainSettings, found["settings"]), path)
    return Session(RunFolder(path), plan, _resume_command(config, path))


def _require_new(path: Path, resume: str) -> None:
    """Refuse a run folder that is taken; a run is told how to go on."""
    if (path / CONFIG).exists():
        raise SettingsError(
            f"{path} exists and is not empty; continue it with: {resume}; or choose another --out"
        )
    require_free(path)


@contextlib.contextmanager
def _made(path: Path) -> Generator[None]:
    """Create the run folder, so that what cannot be written is known before it is measured."""
    is_new = not path.exists()
    make_folder(path)
    try:
        yield
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def _default_folder(config: Path, is_resume: bool) -> Path:
    newest = newest_folder(config.stem) if is_resume else None
    return newest or next_folder(config.stem)


def _resume_command(config: Path, path: Path) -> str:
    return f"litebert pretrain {shlex.quote(str(config))} --out {shlex.quote(str(path))} --resume"


def _check_memory(estimate: Estimate, settings: PretrainSettings, is_forced: bool) -> None:
    if settings.train.device not in ("auto", "cpu"):
        return
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if _has_sysconf() else 0
    if total and estimate.memory_bytes > total and not is_forced:
        raise SettingsError(
            f"the run needs about {estimate.memory_bytes / 1e9:.1f} GB, this machine has "
            f"{total / 1e9:.1f} GB; lower train.micro_batch_tokens (the batch stays as large), set "
            "train.gradient_checkpointing=true, or say --force"
        )


def _has_sysconf() -> bool:
    return "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {})
