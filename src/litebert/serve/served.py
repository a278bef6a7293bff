"""A model under its name: keeps an engine running, starts it again, and swaps it for a new one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from time import monotonic
from typing import Any, Final

from litebert.errors import LitebertError
from litebert.serve.engine.process import (
    EngineLostError,
    EngineProcess,
    EngineSettings,
    Reply,
    StepNote,
)
from litebert.serve.metrics import Metrics

__all__ = ["ServedModel"]

_log = logging.getLogger("litebert.serve")

MOST_PAUSE: Final = 30.0
"""Seconds between two starts of an engine that does not stay alive."""
STEADY: Final = 5.0
"""Seconds after which an engine counts as alive."""


class ServedModel:
    """One model of the server.

    Attributes:
        name: under which it is asked for.
        rate: tokens that its engine computes in a second, lately; 0: not known.
    """

    def __init__(
        self, name: str, settings: EngineSettings, metrics: Metrics, *, has_spare: bool = False
    ) -> None:
        """Describe it; `start` loads it.

        Args:
            name: under which it is asked for.
            settings: of its engine.
            metrics: where steps are counted.
            has_spare: keep a second engine that takes over at once when the first one dies.
        """
        self.name, self.settings = name, settings
        self._has_spare = has_spare
        self._spare: asyncio.Task[EngineProcess] | None = None
        self.rate = 0.0
        self.step_seconds = 0.0
        self._metrics = metrics
        self._engine: EngineProcess | None = None
        self._retired: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._swap = asyncio.Lock()
        self._stamp = self._current_stamp()
        self.failures = 0
        """Starts in a row that failed."""

    @property
    def is_ready(self) -> bool:
        """Whether it answers now."""
        return self._engine is not None and not self._engine.lost.is_set()

    @property
    def info(self) -> dict[str, Any]:
        """What the model said about itself; empty before it is loaded."""
        return self._engine.info if self._engine else {}

    @property
    def pid(self) -> int | None:
        """Number of the engine's process, for tests and people."""
        return self._engine.pid if self._engine else None

    async def start(self) -> None:
        """Start the first engine, and keep one running from then on.

        Raises:
            LitebertError: the model cannot be served.
        """
        self._engine = await EngineProcess.start(self.settings, self._on_step)
        self._keeper = asyncio.create_task(self._keep())
        self._start_spare()

    async def ask(self, operation: str, args: dict[str, Any], **options: Any) -> Reply:
        """Ask the engine of this moment; see `EngineProcess.ask`.

        Raises:
            EngineLostError: there is none, or it died before it answered.
            RequestFailedError: it refuses or cannot compute the request.
        """
        if self._engine is None:
            raise EngineLostError("the model is being loaded")
        return await self._engine.ask(operation, args, **options)

    async def reload(self) -> bool:
        """Start an engine from the folder as it is now; the old one serves until it has proved itself.

        Returns:
            Whether the new one serves. If it cannot, the old one stays.
        """
        async with self._swap:
            stamp = self._current_stamp()
            try:
                fresh = await EngineProcess.start(self.settings, self._on_step)
            except (LitebertError, OSError) as error:
                self._stamp = stamp  # not tried again before the folder changes again
                _log.error("model %s: not reloaded, the old one serves on: %s", self.name, error)
                self._metrics.reloads.add(1, self.name, "failed")
                return False
            old, self._engine, self._stamp = self._engine, fresh, stamp
            self._metrics.reloads.add(1, self.name, "done")
            _log.info("model %s: reloaded", self.name)
        if old is not None:
            self._retire(old.stop(30.0))
        self._retire(self._stop_spare(self._spare))
        self._start_spare()
        return True

    async def reload_if_changed(self) -> None:
        """Reload when the folder holds another export than the one that serves, and nothing reloads it already."""
        if self._current_stamp() not in (None, self._stamp) and not self._swap.locked():
            await self.reload()

    async def stop(self, seconds: float) -> None:
        """End all engines; what they have is answered first, if time allows."""
        if self._keeper is not None:
            self._keeper.cancel()
        engine = self._engine
        self._retire(self._stop_spare(self._spare))
        tasks = list(self._retired)
        if engine is not None:
            tasks.append(asyncio.create_task(engine.stop(seconds)))
        if tasks:
            await asyncio.wait(tasks)

    async def _keep(self) -> None:
        """Start the engine again whenever it is gone."""
        while True:
            engine = self._engine
            born = monotonic()
            if engine is not None:
                await engine.lost.wait()
                if engine is not self._engine:
                    continue  # swapped, and then stopped
            if monotonic() - born > STEADY:
                self.failures = 0
            _log.error("model %s: the engine is gone; starting it again", self.name)
            self._metrics.restarts.add(1, self.name)
            if self._take_spare():
                continue
            await asyncio.sleep(self._pause())
            async with self._swap:
                if self._engine is not engine:
                    continue
                try:
                    self._engine = await EngineProcess.start(self.settings, self._on_step)
                    self._stamp = self._current_stamp()
                except (LitebertError, OSError) as error:  # also: no process can be made
                    _log.error("model %s: the engine does not start: %s", self.name, error)
                else:
                    if self._spare is None or self._spare.done():  # it failed, or died unused
                        self._start_spare()
            self.failures += 1

    def _start_spare(self) -> None:
        if self._has_spare:
            self._spare = asyncio.create_task(EngineProcess.start(self.settings, self._on_step))

    def _take_spare(self) -> bool:
        """Put the spare engine in place of the one that died, if there is one and it lives."""
        spare = self._spare
        if spare is None or not spare.done() or spare.cancelled() or spare.exception():
            return False
        if spare.result().lost.is_set():
            return False
        self._engine = spare.result()
        self._start_spare()
        return True

    async def _stop_spare(self, spare: asyncio.Task[EngineProcess] | None) -> None:
        if spare is None:
            return
        spare.cancel()
        try:
            engine = await spare
        except (LitebertError, OSError, asyncio.CancelledError):
            return
        await engine.kill()

    def _retire(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(ending)
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)

    def _pause(self) -> float:
        return 0.0 if not self.failures else min(MOST_PAUSE, 0.25 * 2 ** (self.failures - 1))

    def _on_step(self, note: StepNote) -> None:
        self._metrics.step(self.name, note)
        rate = note.tokens / max(note.seconds, 1e-6)
        # Small steps are slower for each token; what counts is how fast a full queue is worked off.
        weight = 0.2 * min(1.0, note.tokens / self.settings.batch_tokens)
        self.rate = rate if not self.rate else (1 - weight) * self.rate + weight * rate
        self.step_seconds = 0.8 * self.step_seconds + 0.2 * note.seconds

    def _current_stamp(self) -> tuple[int, int, int] | None:
        """What changes when another export is put in place of the one that was there."""
        source = Path(self.settings.source)
        file = source / "export.json" if source.is_dir() else source
        try:
            status = file.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size
