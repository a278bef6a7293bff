"""Fresh starts after a collapse: new weights, another seed, a lower learning rate."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from torch import nn

from litebert.checkpoint.fs import fsync_folder, make_folder, rename, write_atomic
from litebert.checkpoint.lock import RunLock
from litebert.data.batch import EncodedExample
from litebert.errors import CheckpointError, TrainingDiverged
from litebert.train.evaluate import Evaluate
from litebert.train.events import OnEvent, Restarted
from litebert.train.loop import fit
from litebert.train.micro import StepLoss
from litebert.train.settings import TrainSettings
from litebert.train.state import FitResult
from litebert.train.stop import StopRequest

_RECORD: Final = "attempts.json"
_MOVED: Final = ("checkpoints", "metrics.jsonl")


def fit_with_restarts(
    make_model: Callable[[int], nn.Module],
    data: Sequence[EncodedExample],
    settings: TrainSettings,
    *,
    evaluate: Evaluate | None = None,
    state_dir: Path | None = None,
    resume: bool = False,
    on_event: OnEvent | None = None,
    stop: StopRequest | None = None,
    step_loss: StepLoss | None = None,
) -> tuple[nn.Module, FitResult]:
    """Train with `fit`; after a collapse start again, up to `settings.guard.restarts` times.

    The first attempt is exactly `fit(make_model(seed), ...)`. What a collapsed attempt left is
    moved to `attempts/<number>/` in the run folder and recorded in `attempts.json`, so that an
    interrupted run goes on with the attempt that it was in.

    Args:
        make_model: returns a model with new weights from a seed.
        data: as in `fit`.
        settings: as in `fit`.
        evaluate: as in `fit`.
        state_dir: as in `fit`.
        resume: as in `fit`.
        on_event: as in `fit`; also gets `Restarted`.
        stop: as in `fit`.
        step_loss: as in `fit`.

    Returns:
        The trained model and its result, with the collapsed attempts in `attempts`. When the last
        allowed attempt is found to have collapsed at its end, the result says so.

    Raises:
        TrainingDiverged: the last allowed attempt diverged or collapsed on its way.
        LitebertError: as `fit`.
    """
    attempts = [] if state_dir is None else _read_attempts(state_dir, is_wanted=resume)
    while True:
        number = len(attempts)
        attempt_settings = settings_of_attempt(settings, number)
        model = make_model(attempt_settings.seed)
        is_last = number >= settings.guard.restarts
        try:
            result = fit(
                model,
                data,
                attempt_settings,
                evaluate=evaluate,
                state_dir=state_dir,
                resume=resume,
                on_event=on_event,
                stop=stop,
                step_loss=step_loss,
            )
        except TrainingDiverged as error:
            if is_last:
                raise
            reason, step, evidence = str(error), error.step, error.evidence
        else:
            if is_last or not result.is_collapsed or result.status == "interrupted":
                return model, replace(result, attempts=tuple(attempts))
            finding = [finding for finding in result.findings if finding.is_confirmed][-1]
            reason, step, evidence = finding.message, finding.step, finding.evidence
        attempts.append(
            {
                "seed": attempt_settings.seed,
                "learning_rate": attempt_settings.learning_rate,
                "step": step,
                "reason": reason,
                "evidence": evidence,
            }
        )
        if state_dir is not None:
            _put_aside(state_dir, attempts)
        following = settings_of_attempt(settings, len(attempts))
        if on_event is not None:
            on_event(Restarted(len(attempts), following.seed, following.learning_rate, reason))


def settings_of_attempt(settings: TrainSettings, number: int) -> TrainSettings:
    """Return the settings of the `number`-th fresh start; 0 gives them unchanged.

    Seeds are hashed, so that runs over seeds 0, 1, 2 do not repeat each other's attempts.
    """
    if number == 0:
        return settings
    text = f"attempt {settings.seed} {number}".encode()
    seed = int.from_bytes(hashlib.sha256(text).digest()[:4], "little")
    rate = settings.learning_rate * settings.guard.restart_lr_factor**number
    return settings.model_copy(update={"seed": seed, "learning_rate": rate})


def _read_attempts(state_dir: Path, *, is_wanted: bool) -> list[dict[str, Any]]:
    path = state_dir / _RECORD
    if not path.exists():
        return []
    if not is_wanted:
        raise CheckpointError(
            "an earlier run left collapsed attempts here; resume it, or choose another folder",
            path=path,
        )
    try:
        return list(json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"cannot be read: {error}; use another folder", path=path) from error


def _put_aside(state_dir: Path, attempts: list[dict[str, Any]]) -> None:
    """Move a collapsed attempt away, then record it.

    A kill in between leaves no state and no record: the attempt is done again, with equal result.
    """
    with RunLock(state_dir / "run.lock"):
        number = len(attempts) - 1
        target = state_dir / "attempts" / str(number)
        while target.exists():
            number += 1
            target = state_dir / "attempts" / str(number)
        make_folder(target)
        for name in _MOVED:
            with contextlib.suppress(FileNotFoundError):
                (state_dir / name).lstat()
                rename(state_dir / name, target / name)
        fsync_folder(target)
        fsync_folder(state_dir)
        write_atomic(state_dir / _RECORD, json.dumps(attempts, indent=1).encode())
