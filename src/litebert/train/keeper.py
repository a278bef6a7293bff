"""Saves a run, finds it again, and goes back to its last good state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litebert.errors import CheckpointError
from litebert.train.plan import StepPlan
from litebert.train.settings import TrainSettings
from litebert.train.shared_store import SharedStore
from litebert.train.state import MemoryStore, Snapshot, TrainState, check_same_run


class Keeper:
    """Holds the states of one run: on disk, or without a store the last good one in memory.

    Attributes:
        saved: (step, evaluated step) of the newest saved state, None before the first.
    """

    def __init__(
        self,
        store: SharedStore | None,
        snapshot: Snapshot,
        plan: StepPlan,
        settings: TrainSettings,
        data_sha256: str,
    ) -> None:
        self.saved: tuple[int, int] | None = None
        self._store, self._memory = store, MemoryStore()
        self._snapshot, self._plan, self._settings = snapshot, plan, settings
        self._data_sha256 = data_sha256

    @property
    def saved_step(self) -> int | None:
        """Newest step on disk."""
        return self.saved[0] if self.saved and self._store is not None else None

    def load(self, resume: bool) -> TrainState | None:
        """Put the newest state back; None when there is none.

        Raises:
            CheckpointError: there is one and `resume` is False, it is of another run, or none of
                those that are there can be used.
        """
        if self._store is None:
            return None
        steps = self._store.steps()
        if steps and not resume:
            raise CheckpointError(
                f"there is a training state of step {steps[-1]}; resume it, or choose another "
                "folder",
                path=self._store.folder,
            )
        found = self._store.load_latest()
        if found is None:
            return None
        check_same_run(found.scalars, self._settings, self._data_sha256)
        state = self._snapshot.restore(found)
        self.saved = (state.step, state.evaluated_step)
        return state

    def save(self, state: TrainState) -> Path | None:
        """Save everything; return the folder, None without a store or when it is saved already.

        Raises:
            StorageError: the disk refused; the older states are as before.
        """
        if self.saved == (state.step, state.evaluated_step):
            return None
        good_before = state.good_step
        is_healthy = self._snapshot.guard.state.bad_steps_in_row == 0
        if is_healthy and state.step % self._plan.save_steps == 0:
            state.good_step = state.step
        folder: Path | None = None
        try:
            tensors, scalars = self._snapshot.capture(state)
            if self._store is None:
                self._memory.save(state.step, tensors, scalars, protect=[state.good_step])
            else:
                folder = self._store.save(
                    state.step,
                    tensors,
                    scalars | self._identity(),
                    keep=self._settings.keep_states,
                    protect=[state.good_step, good_before, state.best_step or 0],
                    about={
                        "data_sha256": self._data_sha256,
                        "data_position": self._position(state),
                    },
                )
        except BaseException:
            state.good_step = good_before
            raise
        self.saved = (state.step, state.evaluated_step)
        return folder

    def roll_back(self, state: TrainState, metrics_bytes: int) -> TrainState:
        """Put the last good state back, for a lower learning rate; return it.

        What the run has used up (time, memory limits, roll-backs) is not forgotten.
        """
        counts = self._snapshot.guard.state
        if self._store is None:
            good = self._memory.load(state.good_step)
        else:
            good = self._store.load(state.good_step)
            self._store.discard_after(state.good_step)
        restored = self._snapshot.restore(good)
        self._snapshot.guard.keep_counts(counts)
        restored.lr_scale = state.lr_scale * self._settings.guard.rollback_lr_factor
        restored.seconds, restored.metrics_bytes = state.seconds, metrics_bytes
        restored.micro_batch_tokens = state.micro_batch_tokens
        self.saved = (restored.step, restored.evaluated_step)
        return restored

    def _identity(self) -> dict[str, Any]:
        settings = self._settings.model_dump(mode="json")
        return {"settings": settings, "data_sha256": self._data_sha256}

    def _position(self, state: TrainState) -> dict[str, float]:
        """Where the data stands: with seed and step every later batch follows by arithmetic."""
        epoch = self._plan.epoch(state.step)
        return {"seed": self._settings.seed, "step": state.step, "epoch": epoch}
