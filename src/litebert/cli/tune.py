"""`litebert tune`: try settings of a training, and keep the best."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typer

from litebert.cli.choices import (
    ChoiceColumns,
    DryRun,
    EncodingName,
    EvalFile,
    KindOfLabel,
    LabelColumn,
    LongTexts,
    MaxLength,
    MetricName,
    ModelSource,
    NoBaselines,
    OnBadRow,
    Stride,
    TaskName,
    TextColumns,
)
from litebert.cli.output import is_interactive, say, show, show_json

if TYPE_CHECKING:
    from types import TracebackType

    from litebert.recipes.tune.run import SearchEvent


def tune(
    data: Path | None = typer.Argument(
        None, metavar="DATA", help="Labelled file or folder. Not needed with --config."
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Folder of the search; it goes on there."),
    trials: int | None = typer.Option(None, "--trials", min=1, help="Trials in all; default 20."),
    evaluation: EvalFile = None,
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask before the search."),
    dry_run: DryRun = False,
    config: Path | None = typer.Option(
        None, "--config", "-c", help="Settings file (TOML), with ranges in [tune.space]."
    ),
    task: TaskName = None,
    model: ModelSource = None,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    choice_column: ChoiceColumns = None,
    kind: KindOfLabel = None,
    metric: MetricName = None,
    encoding: EncodingName = None,
    on_bad_row: OnBadRow = None,
    epochs: float | None = typer.Option(None, "--epochs", help="Passes over the data of a trial."),
    max_length: MaxLength = None,
    long_texts: LongTexts = None,
    stride: Stride = None,
    max_seconds: float | None = typer.Option(
        None, "--max-seconds", help="Time budget of each trial."
    ),
    timeout: float | None = typer.Option(
        None, "--timeout", min=1, help="Seconds after which no trial goes on; start again later."
    ),
    threads: int | None = typer.Option(None, "--threads", min=1, help="CPU threads."),
    seeds: int | None = typer.Option(
        None, "--seeds", min=1, help="Trainings of each trial, scored by their median; default 1."
    ),
    seed: int | None = typer.Option(None, "--seed", min=0, help="Seed of the choice of settings."),
    no_prune: bool = typer.Option(False, "--no-prune", help="Never end a trial early."),
    no_baselines: NoBaselines = False,
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
    overrides: list[str] | None = typer.Option(
        None, "--set", help="Any setting: section.key=value, such as tune.space.dropout=[0.0, 0.1]."
    ),
) -> None:
    """Search for the settings that a training does best with.

    The same command goes on where it stopped or was killed. best.toml in the folder is what
    `litebert train --config` takes.
    """
    from litebert.checkpoint.fs import StorageError
    from litebert.cli.training import (
        TrainingRequest,
        command_line,
        refuse_undecodable,
        settings_of,
    )
    from litebert.errors import SettingsError
    from litebert.recipes.tune.run import plan_search, run_search
    from litebert.recipes.tune.settings import SearchSettings
    from litebert.train.stop import stop_on_signals

    told: dict[str, dict[str, Any]] = {
        "data": {
            "train": data and str(data),
            "eval": evaluation and str(evaluation),
            "task": task,
            "encoding": encoding,
            "text_columns": text_column or None,
            "label_column": label_column,
            "choice_columns": choice_column or None,
            "kind": kind and str(kind),
            "metric": metric,
            "on_bad_row": on_bad_row and str(on_bad_row),
            "max_length": max_length,
            "long_texts": long_texts and str(long_texts),
            "stride": stride,
        },
        "model": {"source": model},
        "train": {"epochs": epochs, "max_seconds": max_seconds, "threads": threads},
        "tune": {"trials": trials, "seed": seed, "prune": False if no_prune else None},
        "": {"num_seeds": seeds, "has_baselines": False if no_baselines else None},
    }
    if data is None and config is None:
        raise SettingsError("nothing to train on: give DATA or --config FILE")
    request = TrainingRequest(told, tuple(overrides or ()), config, out)
    refuse_undecodable(request)
    search = plan_search(settings_of(request, SearchSettings))
    if dry_run:
        show("\n".join([*search.describe(), *search.estimate()]))
        return
    say("\n".join(search.describe()))
    if not yes and is_interactive() and not typer.confirm("Search?", default=True, err=True):
        return
    try:
        with stop_on_signals() as stop, _Shown(search.base.task.metric, out) as shown:
            outcome = run_search(
                search, out, command=command_line(), on_event=shown, stop=stop, timeout=timeout
            )
    except (KeyboardInterrupt, OSError, StorageError):
        if (out / "trials").is_dir():
            say("trials that have ended are kept; the same command goes on")
        raise
    if as_json:
        show_json(outcome.to_json())
    else:
        show("\n".join(["", *outcome.lines(), ""]))
        if outcome.best is not None:
            show(f"settings  {out / 'best.toml'}  (litebert train --config takes it)")
            show(f"model     {out / 'trials' / outcome.best.folder}")
            show(f"plots     {out / 'plots'}")
    if outcome.signal is not None:
        say(f"{len(outcome.records):,} of {outcome.wanted:,} trials; the same command goes on")
    if outcome.signal:
        raise typer.Exit(128 + outcome.signal)
    if outcome.best is None:
        raise typer.Exit(1)


class _Shown:
    """Says when trials begin and end; inside a trial the run shows itself."""

    def __init__(self, metric: str, out: Path) -> None:
        self._metric, self._out = metric, out
        self._trial: ExitStack | None = None
        self._progress: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def __call__(self, event: SearchEvent) -> None:
        from litebert.cli.progress import Progress
        from litebert.recipes.tune.run import TrialEnded, TrialStarted

        if isinstance(event, TrialStarted):
            values = ", ".join(
                f"{name} {_shown(value)}" for name, value in event.trial.values.items()
            )
            again = ", from where it stopped" if event.trial.is_continued else ""
            say(f"trial {event.trial.number} ({event.count + 1} of {event.total}{again}): {values}")
            self._trial = ExitStack()
            self._progress = self._trial.enter_context(Progress(self._metric))
        elif isinstance(event, TrialEnded):
            self._close()
            record = event.record
            score = "" if record.score is None else f", {self._metric} {record.score:.4f}"
            mark = "  best so far" if event.is_best else ""
            say(f"trial {record.number} {record.state}{score} in {record.seconds:.0f} s{mark}")
        elif self._progress is not None:
            self._progress(event)
        else:
            Progress(self._metric)(event)

    def _close(self) -> None:
        if self._trial is not None:
            self._trial.close()
        self._trial = self._progress = None


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
