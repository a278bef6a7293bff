"""The engine's loop: takes what has come, computes the fairest step, answers, and starts again.

Nothing waits for a batch to fill: who comes while a step runs is in the next one. Only from idle the
loop waits for company, a few milliseconds at most.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.errors import DataError, LitebertError
from litebert.serve.engine.channel import Frame, pack
from litebert.serve.engine.fair_queue import FairQueue, Waiting
from litebert.serve.engine.jobs import Job, StepKey
from litebert.serve.engine.operations import OPERATIONS
from litebert.serve.engine.steps import NotFiniteError, Stepper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from litebert.runtime.session import Session

__all__ = ["EngineLoop"]

MOST_PREPARED: Final = 64
"""Requests that are read and tokenized before a step, so that a flood cannot keep one from running."""


class EngineLoop:
    """Answers frames with frames until it is told to stop, or nobody is left."""

    def __init__(
        self,
        session: Session,
        frames: queue.SimpleQueue[Frame | None],
        send: Callable[[bytes], None],
        *,
        batch_tokens: int,
        max_wait: float,
        max_request_tokens: int,
    ) -> None:
        """Set it up.

        Args:
            session: the model.
            frames: what has come; None: the server is gone.
            send: takes the bytes of a frame.
            batch_tokens: tokens of a step.
            max_wait: seconds that a request waits for company when nothing else runs.
            max_request_tokens: tokens of one request, all its sequences together.
        """
        self._session, self._frames, self._send = session, frames, send
        self._batch_tokens, self._max_wait = batch_tokens, max_wait
        self._max_request_tokens = max_request_tokens
        self._stepper = Stepper(session)
        self._queue: FairQueue[StepKey] = FairQueue()
        self._jobs: dict[int, Job] = {}
        self._waiting: dict[Waiting[StepKey], Job] = {}
        self._is_stopping = False

    def run(self) -> None:
        """Work until told to stop and everything is answered, or until the server is gone."""
        while True:
            if not self._queue:
                if self._is_stopping:
                    return
                if not self._take(self._frames.get()):
                    return
                self._gather()
            for _ in range(MOST_PREPARED):
                try:
                    frame = self._frames.get_nowait()
                except queue.Empty:
                    break
                if not self._take(frame):
                    return
            self._step()

    def _gather(self) -> None:
        """Wait for company, unless the step is full already."""
        end = monotonic() + self._max_wait
        while self._queue and self._queue.tokens < self._batch_tokens:
            try:
                frame = self._frames.get(timeout=max(0.0, end - monotonic()))
            except (queue.Empty, ValueError):
                return
            if not self._take(frame):
                self._is_stopping = True
                return
            if monotonic() >= end:
                return

    def _take(self, frame: Frame | None) -> bool:
        """Handle one frame; False when there is nobody left to work for."""
        if frame is None:
            return False
        if "cancel" in frame.header:
            self._drop(int(frame.header["cancel"]))
        elif "stop" in frame.header:
            self._is_stopping = True
        else:
            self._prepare(frame)
        return True

    def _prepare(self, frame: Frame) -> None:
        """Tokenize a request and put it in the queue, or answer that it cannot be done."""
        header = frame.header
        number = int(header["id"])
        try:
            plan = OPERATIONS[header["op"]](self._session, header["args"])
            key = StepKey(plan.want, header.get("depth"), header.get("exit"))
            if plan.examples and (key.depth is not None or key.exit_when is not None):
                self._stepper.check(key)
            if plan.tokens > self._max_request_tokens:
                raise DataError(
                    f"the request has {plan.tokens} tokens; allowed: {self._max_request_tokens}"
                )
        except Exception as error:  # the request's fault, or ours: either way only this one fails
            self._fail(number, error)
            return
        waiting = Waiting(header["client"], key, [len(example) for example in plan.examples])
        job = Job(number, waiting, plan, [None] * len(plan.examples))
        if job.is_done():
            self._finish(job)
            return
        self._jobs[number] = job
        self._waiting[waiting] = job
        self._queue.add(waiting)

    def _step(self) -> None:
        taken = self._queue.take(self._batch_tokens)
        if not taken:
            return
        start = monotonic()
        units = [(self._waiting[waiting], place) for waiting, place in taken]
        for job, _ in units:
            job.started = job.started or start
        key = taken[0][0].key
        examples = [job.plan.examples[place] for job, place in units]
        results = self._results(key, examples)
        seconds = monotonic() - start
        tokens = sum(map(len, examples))
        for (job, place), result, example in zip(units, results, examples, strict=True):
            job.compute += seconds * len(example) / tokens
            if isinstance(result, Exception):
                if job.id in self._jobs:
                    self._drop(job.id)
                    self._fail(job.id, result)
                continue
            job.outputs[place] = result
        for job in dict.fromkeys(job for job, _ in units):
            if job.id in self._jobs and job.is_done():
                self._forget(job)
                self._finish(job)
        note = {"step": {"tokens": tokens, "sequences": len(units), "seconds": seconds,
                         "waiting": self._queue.tokens}}  # fmt: skip
        self._send(pack(note))

    def _results(
        self, key: StepKey, examples: Sequence[Any]
    ) -> list[NDArray[np.float32] | Exception]:
        if key.want == "words":
            self._stepper.check(key)
            return [np.zeros(1, np.float32) for _ in examples]
        return self._stepper.run(key, examples)

    def _finish(self, job: Job) -> None:
        try:
            body = job.plan.finish([output for output in job.outputs if output is not None])
        except Exception as error:  # as above: only this one fails
            self._fail(job.id, error)
            return
        started = job.started or job.arrived
        header = {
            "id": job.id,
            "tokens": job.plan.tokens,
            "queue": started - job.arrived,
            "compute": job.compute,
        }
        self._send(pack(header, body))

    def _fail(self, number: int, error: Exception) -> None:
        is_known = isinstance(error, LitebertError)
        kind = "backend" if isinstance(error, NotFiniteError) or not is_known else "validation"
        # What is not one of ours may quote the text; its class alone is told and logged.
        message = str(error) if is_known else f"the engine failed ({type(error).__name__})"
        self._send(pack({"id": number, "error": message, "kind": kind}))

    def _drop(self, number: int) -> None:
        job = self._jobs.get(number)
        if job is not None:
            self._queue.remove(job.waiting)
            self._forget(job)

    def _forget(self, job: Job) -> None:
        del self._jobs[job.id]
        del self._waiting[job.waiting]
