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
    data: Path = typer.Argument(
        metavar="TEXTS", help="Shards of `litebert prepare`, a .txt file, or a table."
    ),
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
    eval_data: Path | None = typer.Option(
        None, "--data", help="Labelled data to score teacher and student on at the end."
    ),
    data_task: str | None = typer.Option(
        None, "--task", help="How --data is read, such as glue/sst2 or stsb."
    ),
    max_drop: float | None = typer.Option(
        None, "--max-drop", help="Refuse a student that scores so much worse than its teacher."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
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
    from litebert.cli.output import say, show, show_json
    from litebert.cli.training import LOG, command_line
    from litebert.recipes.compress_measure import MeasureOptions
    from litebert.recipes.distill.job import finish_run
    from litebert.recipes.distill.plan import make_plan
    from litebert.recipes.distill.run import run_plan
    from litebert.recipes.distill.session import open_session, read_settings
    from litebert.recipes.evaluate import EvaluationJob
    from litebert.train.stop import stop_on_signals

    evaluation = None if eval_data is None else EvaluationJob(data=eval_data, task=data_task)
    options = MeasureOptions(evaluation=evaluation, max_drop=max_drop)
    options.check()
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
        outcome = run_plan(session.plan, session.folder, on_event=progress, stop=stop, resume=True)
    if outcome.is_interrupted:
        step = outcome.result.step
        say(f"stopped at step {step:,}; continue with: {session.resume_command}")
        raise typer.Exit(128 + (outcome.result.signal or signal.SIGTERM))
    summary, lines = finish_run(outcome, session.folder, options)
    if as_json:
        show_json(summary)
    else:
        show("\n".join(lines))
