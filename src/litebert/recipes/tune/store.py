"""The trials of a search in a database that outlives the process; the choice of the next settings.

Optuna's tree-structured Parzen estimator (Bergstra et al. 2011) and median pruning. Each choice has
its own seed, so that a search that was interrupted chooses like one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from litebert.errors import CheckpointError, MissingDependencyError
from litebert.recipes.tune.space import Choice, Dimension

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

__all__ = ["LiveTrial", "State", "TrialRecord", "TrialStore", "best_of", "require_optuna"]

State = Literal["done", "pruned", "failed"]

_STUDY: Final = "litebert"
_LARGE: Final = 1_000_003


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial that has ended.

    Attributes:
        number: from 0, in the order of the starts.
        folder: name of its run folder.
        state: "done", "pruned" (ended early), or "failed".
        score: main score; of a pruned trial the last one seen; None if there is none.
        values: dimension name -> value.
        seconds: time it took, in all its sessions.
        evaluations: (number of the evaluation from 1, score).
        note: why it failed or was ended.
    """

    number: int
    folder: str
    state: State
    score: float | None
    values: dict[str, Choice]
    seconds: float
    evaluations: tuple[tuple[int, float], ...] = ()
    note: str = ""


@dataclass(slots=True)
class LiveTrial:
    """A trial that is to be run.

    Attributes:
        number: from 0.
        folder: name of its run folder; that of the interrupted trial it goes on with, if any.
        values: dimension name -> value.
        is_continued: whether an earlier process began it.
        seconds: time it took before.
    """

    number: int
    folder: str
    values: dict[str, Choice]
    is_continued: bool
    seconds: float
    handle: Any = field(repr=False, default=None)


class TrialStore:
    """All trials of one search, higher scores better inside."""

    def __init__(
        self, path: Path, *, seed: int, startup_trials: int, sign: float, warmup: int | None
    ) -> None:
        """Open the database, or begin one.

        Args:
            path: SQLite file.
            seed: of the choices.
            startup_trials: random ones at the start.
            sign: 1.0 where a higher score is better, -1.0 where a lower one is.
            warmup: evaluations of a trial before it may be ended early; None: never.

        Raises:
            MissingDependencyError: optuna is not installed.
            CheckpointError: the file is no such database.
        """
        require_optuna()
        import optuna
        from sqlalchemy.engine import URL

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._path, self._seed, self._startup, self._sign = path, seed, startup_trials, sign
        pruner = (
            optuna.pruners.NopPruner()
            if warmup is None
            else optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=warmup + 1)
        )
        with self._checked():
            url = URL.create("sqlite", database=str(path.absolute())).render_as_string()
            self._study = optuna.create_study(
                storage=optuna.storages.RDBStorage(url),
                study_name=_STUDY,
                direction="maximize",
                pruner=pruner,
                load_if_exists=True,
            )

    @property
    def identity(self) -> dict[str, Any]:
        """What the search is about, as it was set; empty for a new one."""
        with self._checked():
            return dict(self._study.user_attrs.get("identity", {}))

    def set_identity(self, values: Mapping[str, Any]) -> None:
        """Remember what the search is about."""
        with self._checked():
            self._study.set_user_attr("identity", dict(values))

    def ended(self) -> list[TrialRecord]:
        """Return every trial that has ended, in the order of the starts."""
        from optuna.trial import TrialState

        with self._checked():
            trials = self._study.get_trials(
                deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)
            )
        return [self._record(trial) for trial in trials]

    def requeue(self) -> int:
        """Let trials that a killed process left behind go on; return how many there are.

        Call it once, before `next`.
        """
        from optuna.trial import TrialState

        with self._checked():
            left = self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            for trial in left:
                self._study.tell(trial.number, state=TrialState.FAIL)
                if "folder" in trial.user_attrs:
                    kept = {name: trial.user_attrs.get(name) for name in ("folder", "seconds")}
                    self._study.enqueue_trial(trial.params, user_attrs={**kept, "continued": True})
        return len(left)

    def next(self, space: Sequence[Dimension]) -> LiveTrial:
        """Choose the next settings."""
        import optuna

        with self._checked():
            index = len(self.ended())
            self._study.sampler = optuna.samplers.TPESampler(
                seed=(self._seed * _LARGE + index) % 2**32,
                n_startup_trials=self._startup,
                constant_liar=False,
            )
            trial = self._study.ask()
            values: dict[str, Choice] = {d.name: _suggested(trial, d) for d in space}
            known = trial.user_attrs
            live = LiveTrial(
                number=trial.number,
                folder=known.get("folder") or f"{trial.number:04d}",
                values=values,
                is_continued=bool(known.get("continued")),
                seconds=float(known.get("seconds") or 0.0),
                handle=trial,
            )
            trial.set_user_attr("folder", live.folder)
            return live

    def report(self, trial: LiveTrial, number: int, score: float) -> bool:
        """Take in the score of evaluation `number` (from 1); return whether to end the trial."""
        with self._checked():
            value = self._sign * score if math.isfinite(score) else -math.inf
            trial.handle.report(value, number)
            return bool(trial.handle.should_prune())

    def keep_time(self, trial: LiveTrial, seconds: float) -> None:
        """Remember the time of a trial that is interrupted."""
        with self._checked():
            trial.handle.set_user_attr("seconds", seconds)

    def tell(self, trial: LiveTrial, score: float | None, seconds: float, note: str = "") -> None:
        """End a trial: with its score, or (None) early or without one, for the reason in `note`."""
        from optuna.trial import TrialState

        is_scored = score is not None and math.isfinite(score)
        with self._checked():
            trial.handle.set_user_attr("seconds", seconds)
            trial.handle.set_user_attr("note", note)
            if is_scored and score is not None:
                self._study.tell(trial.handle, self._sign * score)
            else:
                self._study.tell(trial.handle, state=TrialState.PRUNED)

    def importances(self) -> dict[str, float]:
        """Return the share of each dimension in the spread of the scores; empty where it is unknown."""
        from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

        scores = [record.score for record in self.ended() if record.state == "done"]
        if len(scores) < 4 or len(set(scores)) < 2:
            return {}
        try:
            with self._checked():
                shares = get_param_importances(self._study, evaluator=PedAnovaImportanceEvaluator())
        except (ValueError, RuntimeError, ZeroDivisionError):
            return {}
        return {name: float(share) for name, share in shares.items() if math.isfinite(share)}

    def _record(self, trial: FrozenTrial) -> TrialRecord:
        from optuna.trial import TrialState

        steps = sorted(trial.intermediate_values.items())
        seen = tuple((step, self._sign * value) for step, value in steps if math.isfinite(value))
        is_done = trial.state == TrialState.COMPLETE
        note = str(trial.user_attrs.get("note", ""))
        state: State = "done" if is_done else "failed" if note else "pruned"
        last = seen[-1][1] if seen else None
        return TrialRecord(
            number=trial.number,
            folder=str(trial.user_attrs.get("folder", "")),
            state=state,
            score=self._sign * trial.value if is_done and trial.value is not None else last,
            values=dict(trial.params),
            seconds=float(trial.user_attrs.get("seconds") or 0.0),
            evaluations=seen,
            note=note,
        )

    @contextmanager
    def _checked(self) -> Generator[None]:
        """Turn what a database can say into one error."""
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (SQLAlchemyError, StorageInternalError) as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise CheckpointError(
                f"the record of the trials cannot be used: {reason:.200}; free the disk, or search in "
                "another folder with --out",
                path=self._path,
            ) from error


def require_optuna() -> None:
    """Refuse to search without the package that chooses, before any time is spent.

    Raises:
        MissingDependencyError: optuna is not installed.
    """
    try:
        import optuna  # pyright: ignore[reportUnusedImport]  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "optuna", extra="tune", purpose="searching settings"
        ) from error


def _suggested(trial: Any, dimension: Dimension) -> Choice:
    if dimension.choices:
        return trial.suggest_categorical(dimension.name, dimension.choices)
    if dimension.is_integer:
        step = 1 if dimension.step is None else int(dimension.step)
        return trial.suggest_int(
            dimension.name, int(dimension.low), int(dimension.high), step=step, log=dimension.is_log
        )
    return trial.suggest_float(
        dimension.name, dimension.low, dimension.high, step=dimension.step, log=dimension.is_log
    )


def best_of(records: Iterable[TrialRecord], sign: float) -> TrialRecord | None:
    """Return the best finished trial, the earliest of equals."""
    done = [r for r in records if r.state == "done" and r.score is not None]
    return max(done, key=lambda r: (sign * (r.score or 0.0), -r.number), default=None)
