"""The server's end of an engine: starts the process, sends requests, and hands out what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from litebert.errors import CheckpointError, LitebertError, SettingsError
from litebert.serve.engine.channel import Frame, FrameReader, pack

__all__ = ["EngineLostError", "EngineProcess", "EngineSettings", "Reply", "RequestFailedError", "StepNote"]  # fmt: skip

_CHUNK: Final = 1 << 18
_WORKER: Final = "litebert.serve.engine.worker"


class EngineLostError(LitebertError, RuntimeError):
    """The process that computes died, or is gone."""


class RequestFailedError(LitebertError, ValueError):
    """The engine refused or could not compute one request.

    Attributes:
        kind: "validation" or "backend".
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How an engine runs.

    Attributes:
        source: exported folder, or one of its graphs.
        precision: as `Session`.
        threads: that compute; None: as many CPUs as the process may use.
        batch_tokens: tokens of a step.
        max_wait: seconds that a request waits for company when nothing else runs.
        max_request_tokens: tokens of one request.
        start_seconds: after which a start that has not ended has failed.
        stall_seconds: without a step, although something waits, after which the process is replaced.
    """

    source: str
    precision: str = "auto"
    threads: int | None = None
    batch_tokens: int = 512
    max_wait: float = 0.002
    max_request_tokens: int = 16_384
    start_seconds: float = 120.0
    stall_seconds: float = 60.0

    def to_json(self) -> str:
        """Return what the worker reads."""
        names = ("source", "precision", "threads", "batch_tokens", "max_wait", "max_request_tokens")
        return json.dumps({name: getattr(self, name) for name in names})


@dataclass(frozen=True, slots=True)
class Reply:
    """What an engine answered.

    Attributes:
        body: JSON.
        tokens: that were computed.
        queue: seconds in the engine's queue.
        compute: seconds of its share of the steps.
    """

    body: bytes
    tokens: int
    queue: float
    compute: float


@dataclass(frozen=True, slots=True)
class StepNote:
    """What an engine says after each step.

    Attributes:
        tokens: of the step.
        sequences: of the step.
        seconds: that it took.
        waiting: tokens that wait.
    """

    tokens: int
    sequences: int
    seconds: float
    waiting: int


class EngineProcess:
    """A running engine.

    Attributes:
        info: what the model says about itself.
        lost: done when the process is gone.
    """

    def __init__(
        self,
        settings: EngineSettings,
        process: asyncio.subprocess.Process,
        on_step: Callable[[StepNote], None],
    ) -> None:
        self.settings = settings
        self.info: dict[str, Any] = {}
        self._process, self._on_step = process, on_step
        self._numbers = itertools.count()
        self._pending: dict[int, asyncio.Future[Reply]] = {}
        self._is_ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._heard = monotonic()
        self._is_stopping = False
        self.lost = asyncio.Event()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._watch())]

    @classmethod
    async def start(
        cls, settings: EngineSettings, on_step: Callable[[StepNote], None]
    ) -> EngineProcess:
        """Start a process and wait until its model has proved that it answers.

        Raises:
            CheckpointError: the model cannot be served.
            SettingsError: a setting that it does not have.
            EngineLostError: the process died or took too long.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            _WORKER,
            settings.to_json(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Threads of the tokenizer would take the CPU from those that compute.
            env=os.environ | {"TOKENIZERS_PARALLELISM": "false"},
        )
        engine = cls(settings, process, on_step)
        try:
            async with asyncio.timeout(settings.start_seconds):
                engine.info = await engine._is_ready
        except TimeoutError as error:
            await engine.kill()
            raise EngineLostError(
                f"the engine of {settings.source} was not ready after {settings.start_seconds:g} s"
            ) from error
        except BaseException:
            await engine.kill()
            raise
        return engine

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def pending(self) -> int:
        """Requests that are not answered yet."""
        return len(self._pending)

    async def ask(
        self,
        operation: str,
        args: dict[str, Any],
        *,
        client: str,
        depth: int | None = None,
        exit_when: str | None = None,
    ) -> Reply:
        """Send a request and wait for its answer; cancelling frees its place.

        Raises:
            RequestFailedError: the engine refuses or cannot compute it.
            EngineLostError: the process died before it answered.
        """
        if self.lost.is_set() or self._process.stdin is None:
            raise EngineLostError("the engine is starting again")
        number = next(self._numbers)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if not self._pending:
            self._heard = monotonic()
        self._pending[number] = future
        header = {"id": number, "op": operation, "args": args, "client": client}
        self._send(pack(header | {"depth": depth, "exit": exit_when}))
        try:
            return await future
        except asyncio.CancelledError:
            self._send(pack({"cancel": number}))
            raise
        finally:
            self._pending.pop(number, None)

    async def stop(self, seconds: float) -> None:
        """Let the process answer what it has, and end."""
        self._is_stopping = True
        self._send(pack({"stop": True}))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.lost.wait()
        await self.kill()

    async def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        self._lose("the engine was stopped")
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _send(self, data: bytes) -> None:
        writer = self._process.stdin
        if writer is not None and not writer.is_closing():
            with contextlib.suppress(ConnectionError):
                writer.write(data)

    async def _read(self) -> None:
        reader, frames = self._process.stdout, FrameReader()
        assert reader is not None  # noqa: S101 - it was asked for
        while data := await reader.read(_CHUNK):
            self._heard = monotonic()
            for frame in frames.feed(data):
                self._handle(frame)
        code = await self._process.wait()
        self._lose(f"the engine ended with code {code}")

    async def _watch(self) -> None:
        """Replace a process that has work and says nothing."""
        limit = self.settings.stall_seconds
        while not self.lost.is_set():
            await asyncio.sleep(min(1.0, limit / 4))
            if self._pending and monotonic() - self._heard > limit:
                self._lose(f"the engine said nothing for {limit:g} s")
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()

    def _handle(self, frame: Frame) -> None:
        header = frame.header
        if "step" in header:
            self._on_step(StepNote(**header["step"]))
            return
        if "ready" in header:
            if not self._is_ready.done():
                self._is_ready.set_result(header["ready"])
            return
        if "failed" in header:
            kind = (
                SettingsError if header["exit_code"] == SettingsError.exit_code else CheckpointError
            )
            if not self._is_ready.done():
                self._is_ready.set_exception(kind(header["failed"]))
            return
        future = self._pending.get(header["id"])
        if future is None or future.done():
            return  # nobody waits any more
        if "error" in header:
            future.set_exception(RequestFailedError(header["error"], header["kind"]))
        else:
            future.set_result(
                Reply(frame.payload, header["tokens"], header["queue"], header["compute"])
            )

    def _lose(self, reason: str) -> None:
        if self.lost.is_set():
            return
        self.lost.set()
        error = EngineLostError(reason)
        if not self._is_ready.done():
            self._is_ready.set_exception(error)
            self._is_ready.exception()  # seen: `start` may have been cancelled
        for future in self._pending.values():
            if not future.done():
                future.set_exception(error)
