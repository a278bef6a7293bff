"""What a run over GLUE was told, and what became of each task; both as files that a rerun reads."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, cast

from litebert.checkpoint.fs import make_folder, write_atomic
from litebert.errors import CheckpointError, SettingsError
from litebert.files import check_file, read_json
from litebert.recipes.glue.entries import GlueEntry

__all__ = ["GlueJob", "TaskResult", "read_result", "require_same_job", "write_result"]

RESULT: Final = "glue.json"
"""Name of both files: in the folder of the run, and in the folder of each task."""
_HALF: Final = re.compile(rf"\.{re.escape(RESULT)}\.tmp-\d+")
_MAX_BYTES: Final = 16_000_000
_CHANGEABLE: Final = frozenset({"tasks", "max_seconds", "has_submission"})
"""What a rerun in the same folder may be told anew."""


@dataclass(frozen=True, slots=True)
class GlueJob:
    """What was asked for.

    Attributes:
        model: model folder or preset.
        data: folder of the benchmark.
        tasks: keys; empty: all that are there.
        seeds: trainings of each task; None: as a single training chooses.
        is_paper: whether the settings of the paper are taken for what is not told.
        max_examples: training examples of each task, at most.
        max_seconds: time of each training.
        epochs: passes over the data.
        has_baselines: whether the constant answer and TF-IDF are scored too.
        from_mnli: whether RTE, STS-B and MRPC start from the model of MNLI.
        has_submission: whether test rows are answered and packed.
        overrides: `section.key=value` settings of every training.
    """

    model: str
    data: Path
    tasks: tuple[str, ...] = ()
    seeds: int | None = None
    is_paper: bool = False
    max_examples: int | None = None
    max_seconds: float | None = None
    epochs: float | None = None
    has_baselines: bool = True
    from_mnli: bool = False
    has_submission: bool = True
    overrides: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values, with absolute paths."""
        model = Path(self.model)
        values = asdict(self) | {"data": str(self.data.absolute())}
        values["model"] = str(model.absolute()) if model.is_dir() else self.model
        return json.loads(json.dumps(values))


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What became of one task.

    Attributes:
        key: task.
        status: finished, failed, or left out.
        note: why, or what to know about the scores.
        scores: official metrics of the kept model.
        seeds: official metrics of each seed that finished.
        baselines: name -> official metrics.
        train, eval: examples to train and to score on.
        start: what training started from.
        seconds: wall-clock time of training and scoring.
    """

    key: str
    status: Literal["finished", "failed", "left out"]
    note: str = ""
    scores: dict[str, float] = field(default_factory=dict[str, float])
    seeds: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    baselines: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    train: int = 0
    eval: int = 0
    start: str = ""
    seconds: float = 0.0

    @property
    def score(self) -> float | None:
        """Mean of the official metrics of the kept model."""
        return _mean(self.scores)

    @property
    def seed_scores(self) -> list[float]:
        """Mean of the official metrics of each seed."""
        return [value for seed in self.seeds if (value := _mean(seed)) is not None]

    @property
    def median(self) -> float | None:
        """Median over the seeds, as the paper reports."""
        return statistics.median(self.seed_scores) if self.seed_scores else None

    @property
    def spread(self) -> float | None:
        """Best seed minus worst seed; None for one seed."""
        values = self.seed_scores
        return max(values) - min(values) if len(values) > 1 else None

    def baseline(self, name: str) -> float | None:
        """Mean of the official metrics of a baseline, None where it was not scored."""
        return _mean(self.baselines.get(name, {}))


def official(entry: GlueEntry, scores: Mapping[str, float]) -> dict[str, float]:
    """Return the official metrics among the scores of a model or baseline."""
    return {name: float(scores[name]) for name in entry.metrics if name in scores}


def write_result(folder: Path, result: TaskResult) -> None:
    """Keep a result in the folder of its task."""
    text = json.dumps({"format_version": 1} | asdict(result), indent=2, ensure_ascii=False)
    write_atomic(folder / RESULT, (text + "\n").encode("utf-8"))


def read_result(folder: Path) -> TaskResult | None:
    """Return the kept result of a task, None where it has not finished.

    Raises:
        CheckpointError: the file is not what `write_result` wrote.
    """
    path = folder / RESULT
    if check_file(path) is None:
        return None
    values = read_json(path, max_bytes=_MAX_BYTES)
    values.pop("format_version", None)
    try:
        return TaskResult(**values)
    except TypeError as error:
        raise CheckpointError(
            f"is no result of a GLUE task ({error}); remove the folder to train it again", path=path
        ) from error


def require_folder(out: Path) -> None:
    """Refuse a place where no folder can be.

    Raises:
        SettingsError: a file, a device or the like stands there, or where a folder above would be.
    """
    place = next(p for p in (out, *out.absolute().parents) if p.exists())
    if not place.is_dir():
        raise SettingsError(f"{place} exists and is no folder; choose another --out")


def require_same_job(out: Path, job: GlueJob) -> None:
    """Keep what was told in the folder of the run; on a rerun it must be the same.

    Raises:
        SettingsError: the folder holds a run that was told something else, or something else.
    """
    path = out / RESULT
    told = job.to_json()
    if check_file(path) is None:
        _clear_half_written(out)
        if out.exists() and any(out.iterdir()):
            raise SettingsError(
                f"{out} exists and is not empty, and is no GLUE run; choose another --out"
            )
        make_folder(out)
    else:
        known = cast("dict[str, Any]", read_json(path, max_bytes=_MAX_BYTES).get("told") or {})
        wrong = [
            name
            for name, value in told.items()
            if name not in _CHANGEABLE and known.get(name) != value
        ]
        if wrong:
            raise SettingsError(
                f"{out} holds a run with another {wrong[0]}: {known.get(wrong[0])!r:.120}, now "
                f"{told[wrong[0]]!r:.120}; give the same settings to go on, or another --out"
            )
    text = json.dumps({"format_version": 1, "told": told}, indent=2, ensure_ascii=False)
    write_atomic(path, (text + "\n").encode("utf-8"))


def _clear_half_written(out: Path) -> None:
    """Take away what was left where the first file was being written when the run was killed."""
    entries = list(out.iterdir()) if out.is_dir() else []
    if all(_HALF.fullmatch(entry.name) and entry.is_file() for entry in entries):
        for entry in entries:
            entry.unlink()


def _mean(scores: Mapping[str, float]) -> float | None:
    return statistics.fmean(scores.values()) if scores else None
