"""From settings to a run folder that is ready: a new one, or one that goes on."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litebert.errors import CheckpointError, SettingsError
from litebert.models import locate
from litebert.recipes.distill.plan import DistillPlan, make_plan
from litebert.recipes.distill.settings import DistillRun
from litebert.recipes.durations import parse_duration
from litebert.recipes.run_folder import (
    CONFIG,
    RunFolder,
    clear_unfinished_start,
    next_folder,
    require_free,
)
from litebert.settings import build_settings, load_settings, read_toml

__all__ = ["Session", "open_session", "read_settings"]

FREE_SECTIONS: Final = ("train", "checks")
"""What the loop itself compares when a run goes on, or what changes no weight."""


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """A run folder and what to do in it.

    Attributes:
        folder: the run folder.
        plan: the run, with every setting resolved.
        resume_command: goes on with it.
    """

    folder: RunFolder
    plan: DistillPlan
    resume_command: str


def read_settings(
    config: Path,
    *,
    teacher: Path,
    data: Path,
    overrides: tuple[str, ...] = (),
    time_budget: str | None = None,
    checks: tuple[str, ...] = (),
) -> DistillRun:
    """Read a settings file, with what the command line names on top; paths become absolute.

    Raises:
        SettingsError: file missing, unknown key, wrong value.
    """
    values: dict[str, Any] = read_toml(config)
    if time_budget is not None:
        overrides = (*overrides, f"train.max_seconds={parse_duration(time_budget)}")
    values["teacher"] = str(locate(teacher).absolute())
    values["data"] = dict(values.get("data") or {}) | {"path": str(data.absolute())}
    told = [_check_of(text) for text in checks]
    values["checks"] = [*(values.get("checks") or []), *told]
    settings = build_settings(DistillRun, values, path=config, overrides=overrides)
    source = Path(settings.student.source)
    student = {"source": str(source.absolute())} if source.is_dir() else {}
    cache = settings.data.cache and str(Path(settings.data.cache).absolute())
    located = tuple(
        check.model_copy(update={"path": str(Path(check.path).absolute())})
        for check in settings.checks
    )
    return settings.model_copy(
        update={
            "student": settings.student.model_copy(update=student),
            "data": settings.data.model_copy(update={"cache": cache}),
            "checks": located,
        }
    )


def open_session(
    settings: DistillRun,
    *,
    names: tuple[Path, Path, Path],
    out: Path | None,
    is_resume: bool,
    command: str,
    say: Callable[[str], None],
) -> Session:
    """Open the run folder, or create it.

    Args:
        settings: what was asked for.
        names: teacher, settings file and data as they were named.
        out: run folder; None: the next `runs/NAME-N`.
        is_resume: go on with the run that is there; without one, begin.
        command: the command line, for the record.
        say: is told lines for people.

    Raises:
        SettingsError: `out` holds something and `is_resume` is False.
        LitebertError: as `make_plan`; a run with other settings.
    """
    path = out or next_folder(names[1].stem)
    quoted = " ".join(shlex.quote(str(name)) for name in (*names, "--out", path))
    resume = f"litebert distill {quoted} --resume"
    if (path / CONFIG).exists():
        if not is_resume:
            raise SettingsError(
                f"{path} exists and is not empty; continue it with: {resume}; or choose another --out"
            )
        folder = RunFolder.open(path)
        _require_same(load_settings(DistillRun, folder.config), settings, path)
        plan = make_plan(settings)
    else:
        if is_resume:
            clear_unfinished_start(path)
        require_free(path)
        plan = make_plan(settings)
        folder = RunFolder.start(path, name=names[1].stem, command=command, settings=settings)
    say("\n".join(plan.describe()))
    return Session(folder, plan, resume)


def _check_of(text: str) -> dict[str, Any]:
    """Return the settings of one `KIND=PATH[:PART]`."""
    kind, equals, path = text.partition("=")
    if not equals or not kind or not path:
        raise SettingsError(f"check {text!r} is no KIND=PATH, such as stsb=data/STS-B")
    stem, _, part = path.rpartition(":")
    if stem and part in ("train", "eval", "test"):
        return {"kind": kind, "path": stem, "split": part}
    return {"kind": kind, "path": path}


def _require_same(before: DistillRun, wanted: DistillRun, path: Path) -> None:
    was, now = before.model_dump(mode="json"), wanted.model_dump(mode="json")
    changed = [
        f"{key} was {was[key]!r:.200}, is {now[key]!r:.200}"
        for key in was
        if key not in FREE_SECTIONS and was[key] != now[key]
    ]
    if changed:
        raise CheckpointError(
            f"cannot resume with other settings: {'; '.join(changed)}; resume with the old ones, or "
            "choose another --out",
            path=path,
        )
