"""Everything a run must remember to go on as if it had never stopped, and its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn

from litebert.checkpoint.rng import capture_rng, restore_rng
from litebert.checkpoint.state import SavedState
from litebert.errors import CheckpointError
from litebert.train.averaging import WeightAverage
from litebert.train.guard import Finding, Guard
from litebert.train.optim import load_optimizer_state, optimizer_state
from litebert.train.settings import TrainSettings
from litebert.train.sharding import load_whole, saved_tensor, whole_tensor

FREE_SETTINGS: Final = frozenset(
    {"device", "keep_states", "log_steps", "max_seconds", "micro_batch_tokens", "threads"}
    | {"gradient_checkpointing", "load_best", "data_workers", "rank_timeout_seconds"}
    | {"compile", "trackers", "tracker_project", "shard_weights"}
)
"""Settings that a resumed run may change: they do not change what is computed, or only rounding."""

Status = Literal["finished", "early_stopped", "time_up", "interrupted"]


@dataclass(slots=True)
class Window:
    """Sums since the last line of the log."""

    loss: float = 0.0
    terms: dict[str, float] = field(default_factory=dict[str, float])
    """Sum of each term's mean, over the steps that had it."""
    term_steps: dict[str, int] = field(default_factory=dict[str, int])
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    data_seconds: float = 0.0
    """Time that steps waited for their batch."""

    def add_loss(self, loss: float, terms: Mapping[str, float]) -> None:
        """Add the losses of a step."""
        self.loss += loss
        self.steps += 1
        for name, value in terms.items():
            self.terms[name] = self.terms.get(name, 0.0) + value
            self.term_steps[name] = self.term_steps.get(name, 0) + 1

    def add_time(self, tokens: int, seconds: float, data_seconds: float) -> None:
        """Add what a step cost."""
        self.tokens += tokens
        self.seconds += seconds
        self.data_seconds += data_seconds

    def means(self) -> dict[str, float]:
        """Return the mean of each term."""
        return {name: value / self.term_steps[name] for name, value in self.terms.items()}


@dataclass(slots=True)
class TrainState:
    """Numbers of a run in progress; all of it is JSON."""

    step: int = 0
    """Optimizer updates done, skipped ones included."""
    tokens_seen: int = 0
    seconds: float = 0.0
    """Time used, monotonic, over all processes that worked on the run."""
    micro_batch_tokens: int = 0
    """Current limit; smaller than the setting after memory ran out."""
    lr_scale: float = 1.0
    """Product of the factors of all roll-backs."""
    good_step: int = 0
    """Saved state that a roll-back goes to."""
    evaluated_step: int = 0
    """Step of the last evaluation."""
    best_step: int | None = None
    best_score: float | None = None
    best_metrics: dict[str, float] = field(default_factory=dict[str, float])
    evaluations_since_best: int = 0
    last_metrics: dict[str, float] = field(default_factory=dict[str, float])
    is_given_up: bool = False
    """The model collapsed after it had learned; its best weights are the result."""
    window: Window = field(default_factory=Window)
    metrics_bytes: int = 0
    """Length of `metrics.jsonl` when the state was saved."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> TrainState:
        """Return the state from what `asdict` gave.

        Raises:
            CheckpointError: a number is missing or unknown.
        """
        names = {item.name for item in fields(cls)}
        odd = sorted(names.symmetric_difference(values))
        if odd:
            raise CheckpointError(f"the training state does not fit this version: {', '.join(odd)}")
        table = dict(values)
        table["window"] = Window(**table["window"])
        return cls(**table)


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """How a run ended.

    Attributes:
        status: "finished" (all steps), "early_stopped" (patience, or collapsed after it had
            learned), "time_up" (time budget, with a
            finished schedule) or "interrupted" (a stop was requested; resume to go on).
        signal: number of the signal that interrupted the run, 0 for a request of the program.
        step: steps done.
        epoch: passes over the data done.
        best_step: step of the best evaluation; None without evaluations.
        best_score: its score, higher is better.
        best_metrics: its metrics.
        last_metrics: metrics of the last evaluation.
        last_weights: the weights at the end, on the CPU, where the model holds the best ones
            instead; None where the model holds the last ones.
        saved_step: newest step that is on disk; None without a folder.
        tokens_seen: real tokens trained on.
        seconds: time used, over all resumed parts.
        skipped_steps: steps without an update, for a gradient that was not finite or extreme.
        rollbacks: times that training went back.
        findings: what the guard saw.
        is_collapsed: the guard is sure that the model never used its input.
        attempts: one entry for each collapsed attempt before this one: seed, rate, reason.
    """

    status: Status
    signal: int | None
    step: int
    epoch: float
    best_step: int | None
    best_score: float | None
    best_metrics: dict[str, float]
    last_metrics: dict[str, float]
    last_weights: dict[str, Tensor] | None
    saved_step: int | None
    tokens_seen: int
    seconds: float
    skipped_steps: int
    rollbacks: int
    findings: tuple[Finding, ...] = ()
    is_collapsed: bool = False
    attempts: tuple[dict[str, Any], ...] = ()

    @property
    def exit_code(self) -> int:
        """Process exit code by convention: 128 + signal when interrupted, else 0."""
        return 128 + self.signal if self.status == "interrupted" and self.signal else 0


@dataclass(slots=True, eq=False)
class Snapshot:
    """The parts of a run that are saved and put back together."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler | None
    guard: Guard
    average: WeightAverage
    best_weights: dict[str, Tensor] | None = None
    """Weights of the best evaluation, on the CPU."""
    findings: list[Finding] = field(default_factory=list[Finding])
    """What the guard saw so far."""

    def capture(self, state: TrainState) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return (tensors, JSON scalars) with everything."""
        tensors = _prefixed("model/", self.model.state_dict())
        memory, memory_scalars = optimizer_state(self.model, self.optimizer)
        tensors |= _prefixed("optimizer/", memory)
        rng, rng_scalars = capture_rng()
        tensors |= _prefixed("rng/", rng)
        averages, average_scalars = self.average.capture()
        tensors |= _prefixed("average/", averages)
        if self.best_weights is not None and state.best_step != state.step:
            tensors |= _prefixed("best/", self.best_weights)
        tensors = {name: saved_tensor(tensor) for name, tensor in tensors.items()}
        return tensors, {
            "state": asdict(state),
            "optimizer": memory_scalars,
            "rng": rng_scalars,
            "guard": self.guard.to_json(),
            "average": average_scalars,
            "findings": [asdict(finding) for finding in self.findings],
            "scaler": None if self.scaler is None else self.scaler.state_dict(),
        }

    def restore(self, saved: SavedState) -> TrainState:
        """Put everything back and return the numbers.

        Raises:
            CheckpointError: it belongs to another model or optimizer.
        """
        try:
            load_whole(self.model, _part("model/", saved.tensors))
        except RuntimeError as error:
            raise CheckpointError(f"the saved weights do not fit the model: {error}") from error
        state = TrainState.from_json(saved.scalars["state"])
        load_optimizer_state(
            self.model,
            self.optimizer,
            _part("optimizer/", saved.tensors),
            saved.scalars["optimizer"],
        )
        restore_rng(_part("rng/", saved.tensors), saved.scalars["rng"])
        self.guard.load_json(saved.scalars["guard"])
        self.average.restore(_part("average/", saved.tensors), saved.scalars.get("average"))
        self.findings[:] = [Finding(**values) for values in saved.scalars["findings"]]
        if self.scaler is not None and saved.scalars["scaler"]:
            self.scaler.load_state_dict(saved.scalars["scaler"])
        best = _part("best/", saved.tensors)
        if best:
            self.best_weights = {name: tensor.clone() for name, tensor in best.items()}
        elif state.best_step == state.step:
            self.keep_best()
        return state

    def keep_best(self) -> None:
        """Remember the weights that were evaluated as the best."""
        with self.average.in_place():
            self.best_weights = weights_on_cpu(self.model)


class MemoryStore:
    """Holds the newest states in memory: what a run without a folder goes back to."""

    def __init__(self) -> None:
        self._states: dict[int, SavedState] = {}

    def save(
        self,
        step: int,
        tensors: Mapping[str, Tensor],
        scalars: Mapping[str, Any],
        *,
        protect: Iterable[int] = (),
    ) -> None:
        """Keep a copy of this state and of the protected ones."""
        kept = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
        wanted = set(protect)
        self._states = {s: state for s, state in self._states.items() if s in wanted}
        self._states[step] = SavedState(step, kept, dict(scalars))

    def load(self, step: int) -> SavedState:
        """Return the state of one step, which must have been kept."""
        return self._states[step]


def weights_on_cpu(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of all weights."""
    state = model.state_dict()
    return {name: whole_tensor(t.detach()).cpu().clone() for name, t in state.items()}


def check_same_run(saved: Mapping[str, Any], settings: TrainSettings, data_sha256: str) -> None:
    """Refuse to go on with other data or other settings than a state was saved with.

    Raises:
        CheckpointError: names what differs.
    """
    before, now = saved["settings"], settings.model_dump(mode="json")
    changed = sorted(k for k in now if k not in FREE_SETTINGS and before.get(k) != now[k])
    if changed:
        shown = "; ".join(f"{k} was {before.get(k)!r}, is {now[k]!r}" for k in changed)
        raise CheckpointError(
            f"cannot resume with other settings: {shown}; resume with the old ones, or train in "
            "another folder"
        )
    if saved["data_sha256"] != data_sha256:
        raise CheckpointError(
            "cannot resume with other data: the sha256 of the encoded examples was "
            f"{saved['data_sha256'][:12]}, is {data_sha256[:12]}; restore the data, or train in "
            "another folder"
        )


def _prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def _part(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
