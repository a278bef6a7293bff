"""`litebert glue`: every GLUE task of a folder, and the archive for the leaderboard."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from litebert.cli.output import say, show
from litebert.cli.progress import Progress
from litebert.cli.training import command_line

if TYPE_CHECKING:
    from litebert.recipes.glue.job import GlueJob


def glue(
    model: str = typer.Argument(
        metavar="MODEL", help="Model folder, litebert-small-en, preset, scratch, or auto."
    ),
    data: Path = typer.Argument(metavar="DIR", help="Folder with CoLA, SST-2, MRPC, ... in it."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Folder; default runs/glue-N."),
    tasks: str | None = typer.Option(None, "--tasks", help="Some tasks only: cola,rte,mrpc."),
    seeds: int | None = typer.Option(
        None, "--seeds", min=1, help="Trainings of each task; default 3 below 10,000 rows, else 1."
    ),
    paper: bool = typer.Option(
        False, "--paper", help="The paper's settings of each task for what is not told."
    ),
    max_examples: int | None = typer.Option(
        None, "--max-examples", min=2, help="Training examples of each task, at most."
    ),
    max_seconds: float | None = typer.Option(
        None, "--max-seconds", help="Time budget of each training."
    ),
    epochs: float | None = typer.Option(None, "--epochs", help="Passes over the data."),
    from_mnli: bool = typer.Option(
        False, "--from-mnli", help="Start RTE, STS-B and MRPC from the model of MNLI."
    ),
    no_baselines: bool = typer.Option(
        False, "--no-baselines", help="Leave out the constant answer and TF-IDF."
    ),
    no_submission: bool = typer.Option(
        False, "--no-submission", help="Do not answer the test files."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be done, and stop."),
    overrides: list[str] | None = typer.Option(
        None, "--set", help="Any setting of all trainings: section.key=value."
    ),
) -> None:
    """Train on every GLUE task that is there, score by the official metrics, pack the answers.

    The same command with the same --out goes on where it stopped; finished tasks are kept.
    """
    from litebert.recipes.glue.job import GlueJob

    job = GlueJob(
        model=model,
        data=data,
        tasks=tuple(name for name in (tasks or "").split(",") if name.strip()),
        seeds=seeds,
        is_paper=paper,
        max_examples=max_examples,
        max_seconds=max_seconds,
        epochs=epochs,
        has_baselines=not no_baselines,
        from_mnli=from_mnli,
        has_submission=not no_submission,
        overrides=tuple(overrides or ()),
    )
    run_glue(job, out, dry_run=dry_run)


def run_glue(job: GlueJob, out: Path | None, *, dry_run: bool) -> None:
    """Do the job; print the table.

    Raises:
        LitebertError: as the recipe.
        Exit: 1 where a task failed; 128 + signal after an interruption.
    """
    from litebert.checkpoint.fs import StorageError, write_atomic
    from litebert.recipes.glue.job import require_folder, require_same_job
    from litebert.recipes.glue.report import report_lines, scores_json
    from litebert.recipes.glue.run import Interrupted, describe_tasks, require_tasks, run_tasks
    from litebert.recipes.glue.submission import write_submission
    from litebert.recipes.run_folder import next_folder
    from litebert.train.stop import stop_on_signals

    path = next_folder("glue") if out is None else out
    require_folder(path)
    require_tasks(job, path)
    if dry_run:
        for line in describe_tasks(job, path):
            show(line)
        return
    require_same_job(path, job)
    hint = f"continue with the same command and --out {shlex.quote(str(path))}"
    try:
        with stop_on_signals() as stop:
            results = run_tasks(
                job, path, watch=Progress, tell=say, stop=stop, command=command_line()
            )
        submission = None
        if not isinstance(results, Interrupted):
            finished = [result.key for result in results if result.status == "finished"]
            if job.has_submission and finished:
                submission = write_submission(path, job.data, finished, tell=say)
            text = json.dumps(scores_json(job, results, submission), indent=2, ensure_ascii=False)
            write_atomic(path / "scores.json", (text + "\n").encode("utf-8"))
    except (KeyboardInterrupt, OSError, StorageError):
        say(f"what is finished is kept; {hint}")
        raise
    if isinstance(results, Interrupted):
        say(f"stopped; {hint}")
        raise typer.Exit(128 + (results.signal or signal.SIGTERM))
    show("\n".join([*report_lines(results, submission), f"scores    {path / 'scores.json'}"]))
    if any(result.status == "failed" for result in results):
        raise typer.Exit(1)
