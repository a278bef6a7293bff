"""The states of a run that several ranks train: the first rank writes, all read the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from litebert.checkpoint.fs import StorageError
from litebert.checkpoint.state import SavedState, StateStore
from litebert.train.ranks import Ranks

__all__ = ["SharedStore"]


class SharedStore:
    """A `StateStore` of the first rank, as every rank sees it."""

    def __init__(self, store: StateStore | None, ranks: Ranks) -> None:
        self._store, self._ranks = store, ranks

    @property
    def folder(self) -> Path | None:
        """Where the states are; None on the other ranks."""
        return None if self._store is None else self._store.folder

    def steps(self) -> list[int]:
        """Return the saved steps, oldest first."""
        steps = [] if self._store is None else self._store.steps()
        shared = self._ranks.share_state(({}, {"steps": steps}))
        return [] if shared is None else list(shared[1]["steps"])

    def load_latest(self) -> SavedState | None:
        """Return the newest state that can be used, None without one."""
        return self._shared(None if self._store is None else self._store.load_latest())

    def load(self, step: int) -> SavedState:
        """Return the state of one step, which must be there."""
        found = self._shared(None if self._store is None else self._store.load(step))
        if found is None:
            raise KeyError(step)
        return found

    def save(
        self,
        step: int,
        tensors: Mapping[str, Tensor],
        scalars: Mapping[str, Any],
        **options: Any,
    ) -> Path | None:
        """Save on the first rank, while the others wait; see `StateStore.save`.

        Raises:
            StorageError: on every rank, if the disk of the first one refused.
        """
        folder, failure = None, None
        try:
            if self._store is not None:
                folder = self._store.save(step, tensors, scalars, **options)
        except StorageError as error:
            failure = error
        told = self._ranks.share_state(({}, _describe(failure)), is_patient=True)
        if failure is not None:
            raise failure
        if told is not None and "errno" in told[1]:
            number = int(told[1]["errno"])
            raise StorageError(
                f"the first rank could not save the state ({os.strerror(number)}); see its log",
                path=Path(told[1]["path"]),
                errno=number,
            )
        return folder

    def discard_after(self, step: int) -> None:
        """Set aside the states after `step`, on the first rank."""
        if self._store is not None:
            self._store.discard_after(step)

    def _shared(self, found: SavedState | None) -> SavedState | None:
        state = None
        if found is not None:
            state = dict(found.tensors), {"step": found.step, "scalars": dict(found.scalars)}
        shared = self._ranks.share_state(state)
        if shared is None:
            return None
        return SavedState(int(shared[1]["step"]), shared[0], shared[1]["scalars"])


def _describe(failure: StorageError | None) -> dict[str, Any]:
    if failure is None:
        return {}
    return {"path": str(failure.path or ""), "errno": failure.errno}
