"""`litebert distill`: a teacher, a student and texts in, a smaller model out."""

from __future__ import annotations

import signal
from pathlib import Path

import typer


def distill(
    teacher: Path = typer.Argument(
        metavar="TEACHER", help="Model folder: of litebert, or of a BERT encoder (safetensors)."
    ),
    config: Path = typer.Argument(metavar="STUDENT.toml", help="Student, losses, training."),
    data: Path = typer.Argument(metavar="DATA", help="Shards of `litebert prepare`."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Run folder; default runs/NAME-N."),
    resume: bool = typer.Option(
        False, "--resume", help="Go on with the run in --out; begin it if there is none yet."
    ),
    time_budget: str | None = typer.Option(
        None, "--time-budget", help="End with a finished schedule after this time: 2h, 90m, 600s."
    ),
    check: list[str] | None = typer.Option(
        None,
        "--check",
        help="Scored pairs to look at during the run: KIND=PATH, KIND one of stsb, sick, jsts, "
        "similarity; :train, :eval or :test behind it names a part.",
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be done, and stop."),
    overrides: list[str] | None = typer.Option(
        None, "--set", help="Any setting: section.key=value."
    ),
) -> None:
    """Train a student to answer as its teacher does.

    Stop it at any moment, with Ctrl-C too; --resume goes on. The teacher's outputs are kept on disk
    and made when they are first needed.
    """
    from litebert.cli.distill_progress import DistillProgress
    from litebert.cli.output import say, show
    from litebert.cli.training import LOG, command_line
    from litebert.recipes.distill.job import finish_run
    from litebert.recipes.distill.plan import make_plan
    from litebert.recipes.distill.run import run_plan
    from litebert.recipes.distill.session import open_session, read_settings
    from litebert.train.stop import stop_on_signals

    settings = read_settings(
        config,
        teacher=teacher,
        data=data,
        overrides=tuple(overrides or ()),
        time_budget=time_budget,
        checks=tuple(check or ()),
    )
    if dry_run:
        show("\n".join(make_plan(settings).describe()))
        return
    session = open_session(
        settings,
        names=(teacher, config, data),
        out=out,
        is_resume=resume,
        command=command_line(),
        say=say,
    )
    log = session.folder.path / LOG
    with stop_on_signals() as stop, DistillProgress("score", log) as progress:
        outcome = run_plan(
            session.plan, session.folder, on_event=progress, stop=stop, say=say, resume=True
        )
    if outcome.is_interrupted:
        step = outcome.result.step
        say(f"stopped at step {step:,}; continue with: {session.resume_command}")
        raise typer.Exit(128 + (outcome.result.signal or signal.SIGTERM))
    show("\n".join(finish_run(outcome, session.folder)))
