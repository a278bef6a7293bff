"""One step of the engine: sequences of many requests in one packed call; who fails, fails alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from litebert.errors import DataError, LitebertError
from litebert.serve.engine.jobs import StepKey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from litebert.data.batch import EncodedExample
    from litebert.runtime.session import Session

__all__ = ["NotFiniteError", "Stepper"]

Result = "NDArray[np.float32] | Exception"


class NotFiniteError(DataError):
    """The model gave numbers that are none."""


class Stepper:
    """Runs a session with another depth or exit rule for every step."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._key: tuple[int | None, str | None] | None = None

    def check(self, key: StepKey) -> None:
        """Refuse a depth or rule that the model does not have.

        Raises:
            SettingsError: no such depth or rule, or a task without exits.
            CheckpointError: the graph cannot stop between depths.
        """
        self._set(key.depth, key.exit_when)

    def run(
        self, key: StepKey, examples: Sequence[EncodedExample]
    ) -> list[NDArray[np.float32] | Exception]:
        """Return for each example its output, or why there is none.

        When a call fails its halves are tried, so that one bad sequence costs its company some calls
        and nothing else.
        """
        try:
            found = self._call(key, examples)
        except Exception as error:  # whatever it is, it belongs to somebody
            if len(examples) == 1:
                return [error]
            middle = len(examples) // 2
            return [*self.run(key, examples[:middle]), *self.run(key, examples[middle:])]
        return [
            output
            if np.isfinite(output).all()
            else NotFiniteError(
                "the model gave NaN or infinity for this text; train or export again"
            )
            for output in found
        ]

    def _call(self, key: StepKey, examples: Sequence[EncodedExample]) -> list[NDArray[np.float32]]:
        self._set(key.depth, key.exit_when)
        tokens = sum(len(example) for example in examples)
        if key.want in ("mean", "cls"):
            return list(self.session.pooled(examples, key.want, batch_tokens=tokens)[:, None])
        return self.session.outputs(examples, batch_tokens=max(1, tokens))

    def _set(self, depth: int | None, exit_when: str | None) -> None:
        if self._key == (depth, exit_when):
            return
        self._key = None
        try:
            self.session.depth = depth
            self.session.set_exit(exit_when)
        except LitebertError:
            self.session.depth = None
            self.session.set_exit(None)
            self._key = (None, None)
            raise
        self._key = (depth, exit_when)
