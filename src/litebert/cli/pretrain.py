"""`litebert pretrain`: prepared shards in, an encoder out."""

from __future__ import annotations

import signal
from pathlib import Path

import typer


def pretrain(
    config: Path = typer.Argument(..., metavar="CONFIG.toml", help="Settings of the run."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Run folder; default runs/NAME-N."),
    resume: bool = typer.Option(
        False, "--resume", help="Go on with the run in --out; begin it if there is none yet."
    ),
    time_budget: str | None = typer.Option(
        None, "--time-budget", help="End with a finished schedule after this time: 2h, 90m, 600s."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Measure the speed, say what would be done, and stop."
    ),
    force: bool = typer.Option(False, "--force", help="Begin although memory seems too small."),
    overrides: list[str] | None = typer.Option(
        None, "--set", help="Any setting: section.key=value."
    ),
) -> None:
    """Pretrain an encoder from the shards of `litebert prepare`.

    Stop it at any moment, with Ctrl-C too; --resume goes on. Several processes: torchrun
    --nproc-per-node N --no-python litebert pretrain CONFIG.toml --out DIR --resume
    """
    from litebert.cli.output import say, show
    from litebert.cli.pretrain_progress import PretrainProgress
    from litebert.cli.training import LOG, command_line
    from litebert.errors import SettingsError
    from litebert.recipes.pretrain.job import finish_run
    from litebert.recipes.pretrain.run import run_plan
    from litebert.recipes.pretrain.session import open_session, preview, read_settings
    from litebert.train.ranks import join_ranks
    from litebert.train.stop import stop_on_signals

    settings = read_settings(config, overrides=tuple(overrides or ()), time_budget=time_budget)
    if dry_run:
        show("\n".join(preview(settings)))
        return
    with join_ranks(settings.train.rank_timeout_seconds) as ranks:
        if ranks.world > 1 and out is None:
            raise SettingsError("several processes need one run folder: give --out DIR")
        session = open_session(
            settings,
            config=config,
            out=out,
            is_resume=resume,
            command=command_line(),
            is_forced=force,
            say=say,
            ranks=ranks,
        )
        log = session.folder.path / LOG if ranks.is_first else None
        with (
            stop_on_signals(has_launcher=ranks.world > 1) as stop,
            PretrainProgress("score", log) as progress,
        ):
            outcome = run_plan(
                session.plan,
                session.folder,
                on_event=progress,
                stop=stop,
                resume=True,
                ranks=ranks,
            )
        if outcome.is_interrupted:
            if ranks.is_first:
                step = outcome.result.step
                say(f"stopped at step {step:,}; continue with: {session.resume_command}")
            raise typer.Exit(128 + (outcome.result.signal or signal.SIGTERM))
        if ranks.is_first:
            show("\n".join(finish_run(outcome, session.folder)))
