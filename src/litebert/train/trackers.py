"""Experiment trackers: what goes to `metrics.jsonl` goes to them as well, and they may fail.

Each tracker is a package of its own that litebert does not need; it is imported when it is named.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TextIO, cast

from litebert.errors import LitebertError, MissingDependencyError
from litebert.registry import Registry
from litebert.train.settings import TrainSettings

log = logging.getLogger(__name__)

FAILURE_LIMIT: Final = 3
"""Failures in a row after which a tracker is not asked again: each may wait for a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """What a tracker is told about a run.

    Attributes:
        folder: run folder, where trackers that write files put theirs.
        project: name that runs are grouped by.
        name: name of the run; by default that of the folder.
        settings: resolved settings, as nested tables.
        step: step that the run goes on from, 0 for a new one.
    """

    folder: Path
    project: str = "litebert"
    name: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    step: int = 0

    @property
    def title(self) -> str:
        """The name, or the name of the folder."""
        return self.name or self.folder.resolve().name

    @property
    def key(self) -> str:
        """The same 16 letters and digits whenever the run in this folder is resumed."""
        text = f"{self.project}\n{self.folder.resolve()}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def tracked_run(folder: Path, settings: TrainSettings, step: int) -> TrackedRun:
    """Return what trackers are told about a run in `folder` that goes on from `step`."""
    return TrackedRun(
        folder=folder,
        project=settings.tracker_project,
        settings=settings.model_dump(mode="json"),
        step=step,
    )


class Tracker(Protocol):
    """Receives the lines of `metrics.jsonl`."""

    def log(self, record: dict[str, Any]) -> None:
        """Take one line: `kind`, `step` >= 0, numbers, tables of numbers, and texts."""
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


class TrackerFactory(Protocol):
    """Starts a tracker."""

    def __call__(self, run: TrackedRun) -> Tracker:
        """Return a tracker of this run, which may be one that goes on."""
        ...


TRACKERS: Final[Registry[TrackerFactory]] = Registry("tracker")


class Trackers:
    """All trackers of one run: none of them can stop the training.

    A failure costs one warning; after three in a row the tracker is not asked again. The lines are
    in `metrics.jsonl` in any case.
    """

    def __init__(self, names: Sequence[str], run: TrackedRun) -> None:
        """Start the named trackers.

        Raises:
            SettingsError: unknown name.
            MissingDependencyError: the package of a tracker is not installed.
        """
        self._running: dict[str, Tracker] = {}
        self._failures: dict[str, int] = {}
        for name, factory in {name: TRACKERS.get(name) for name in names}.items():
            try:
                with _quiet():
                    self._running[name] = factory(run)
            except LitebertError:
                self.close()
                raise
            except Exception as error:  # whatever a foreign package raises
                self._fail(name, error)

    def log(self, record: dict[str, Any]) -> None:
        """Hand one line to each tracker."""
        for name, tracker in list(self._running.items()):
            try:
                with _quiet():
                    tracker.log(record)
                self._failures[name] = 0
            except Exception as error:  # whatever a foreign package raises
                self._fail(name, error)

    def close(self) -> None:
        """Close all trackers; further lines go nowhere."""
        while self._running:
            name, tracker = self._running.popitem()
            try:
                with _quiet():
                    tracker.close()
            except Exception as error:  # whatever a foreign package raises
                self._fail(name, error)

    def _fail(self, name: str, error: Exception) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        if failures == 1:
            log.warning(
                "tracker %r failed (%s: %.200s); training goes on, metrics.jsonl has every line",
                name,
                type(error).__name__,
                error,
            )
        if failures >= FAILURE_LIMIT:
            self._running.pop(name, None)


def _quiet() -> contextlib.redirect_stdout[TextIO]:
    """What a package prints goes to standard error: standard output is for results."""
    return contextlib.redirect_stdout(sys.stderr)


def numbers(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers of a line by a path that begins with its kind: `train/loss`."""
    values = {key: value for key, value in record.items() if key not in ("kind", "step")}
    return dict(_numbers(str(record["kind"]), values))


def _numbers(prefix: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, item in cast(Mapping[str, Any], value).items():
            yield from _numbers(f"{prefix}/{key}", item)
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield prefix, float(value)


def _import(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            package, extra=package, purpose=f"the tracker {package!r}"
        ) from error


@TRACKERS.register("tensorboard")
class TensorBoard:
    """Event files in the folder `tensorboard` of the run."""

    def __init__(self, run: TrackedRun) -> None:
        module = _import("torch.utils.tensorboard", "tensorboard")
        self._writer: Any = module.SummaryWriter(
            log_dir=str(run.folder / "tensorboard"), purge_step=run.step or None
        )

    def log(self, record: dict[str, Any]) -> None:
        """Write the numbers of a line."""
        for name, value in numbers(record).items():
            self._writer.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


@TRACKERS.register("wandb")
class WeightsAndBiases:
    """A run of Weights & Biases; a resumed run goes on in the same one."""

    def __init__(self, run: TrackedRun) -> None:
        self._run: Any = _import("wandb", "wandb").init(
            project=run.project,
            name=run.title,
            id=run.key,
            resume="allow",
            dir=str(run.folder),
            config=dict(run.settings),
        )
        # Steps are an axis, not the counter of calls: after a roll-back they begin lower again.
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def log(self, record: dict[str, Any]) -> None:
        """Send the numbers of a line."""
        if values := numbers(record):
            self._run.log({**values, "step": record["step"]})

    def close(self) -> None:
        """Send what is left and end the run."""
        self._run.finish()


@TRACKERS.register("mlflow")
class MLflow:
    """A run of MLflow in the experiment named as the project; a resumed run goes on in it."""

    def __init__(self, run: TrackedRun) -> None:
        self._mlflow: Any = _import("mlflow", "mlflow")
        experiment = self._mlflow.set_experiment(run.project)
        earlier = self._mlflow.search_runs(
            experiment_ids=[experiment.experiment_id],
            filter_string=f"tags.litebert_key = '{run.key}'",
            max_results=1,
            output_format="list",
        )
        self._run: Any = self._mlflow.start_run(
            run_id=earlier[0].info.run_id if earlier else None,
            run_name=run.title,
            tags={"litebert_key": run.key},
        )
        if not earlier:
            self._mlflow.log_params(
                {name: str(value)[:500] for name, value in _flat("", run.settings)}
            )

    def log(self, record: dict[str, Any]) -> None:
        """Send the numbers of a line."""
        if values := numbers(record):
            self._mlflow.log_metrics(values, step=record["step"])

    def close(self) -> None:
        """End the run."""
        self._mlflow.end_run()


@TRACKERS.register("trackio")
class Trackio:
    """A run of trackio, on this machine; a resumed run goes on in the same one."""

    def __init__(self, run: TrackedRun) -> None:
        self._trackio: Any = _import("trackio", "trackio")
        self._trackio.init(
            project=run.project,
            name=f"{run.title}-{run.key[:6]}",
            config=dict(run.settings),
            resume="allow",
            embed=False,
        )

    def log(self, record: dict[str, Any]) -> None:
        """Store the numbers of a line."""
        if values := numbers(record):
            self._trackio.log(values, step=record["step"])

    def close(self) -> None:
        """Store what is left."""
        self._trackio.finish()


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in cast(Mapping[str, Any], value).items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), item)
    else:
        yield prefix, value
