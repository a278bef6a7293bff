"""What a server is made of, without HTTP: models by name, who is let in, and how a request is answered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from time import monotonic
from typing import Final

from litebert.errors import SettingsError
from litebert.serve.admission import CHARACTERS, Admission, OverloadedError
from litebert.serve.engine.process import EngineLostError, Reply, RequestFailedError
from litebert.serve.errors import HttpFault
from litebert.serve.keys import ApiKeys
from litebert.serve.metrics import Metrics
from litebert.serve.requests import Body, Defaults
from litebert.serve.served import ServedModel
from litebert.serve.settings import ServeSettings
from litebert.text.pairs import CHARACTERS_PER_TOKEN

__all__ = ["ClientGoneError", "Service"]

_log = logging.getLogger("litebert.serve")

WATCH_SECONDS: Final = 2.0


class ClientGoneError(Exception):
    """Whoever asked has closed the connection."""


class Service:
    """The models of a server and its limits.

    Attributes:
        models: by name; the first answers requests that name none.
        is_draining: told to end; what is there is still answered.
    """

    def __init__(self, settings: ServeSettings) -> None:
        """Set it up; `start` loads the models.

        Raises:
            SettingsError: API keys that cannot be used.
        """
        self.settings = settings
        self.keys = ApiKeys(settings)
        self.metrics = Metrics()
        self.models = {
            name: ServedModel(
                name, settings.engine(name), self.metrics, has_spare=settings.spare_engine
            )
            for name in settings.models
        }
        self.admission = Admission(
            most=settings.max_concurrent_requests, most_seconds=settings.max_queue_seconds
        )
        self.is_draining = False
        self._watcher: asyncio.Task[None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether every model answers, and new requests are welcome."""
        return not self.is_draining and all(model.is_ready for model in self.models.values())

    async def start(self) -> None:
        """Load all models.

        Raises:
            LitebertError: one of them cannot be served, or has no such depth.
        """
        async with asyncio.TaskGroup() as group:
            for model in self.models.values():
                group.create_task(model.start())
        for model in self.models.values():
            depth = self.settings.depth
            if depth is not None and depth > model.info["depths"]:
                raise SettingsError(
                    f"depth is {depth}, but model {model.name!r} has {model.info['depths']} depths"
                )
        if self.settings.watch:
            self._watcher = asyncio.create_task(self._watch())

    async def reload(self) -> None:
        """Read the keys and load every model again; what cannot be used leaves the old in place."""
        try:
            self.keys.reload()
        except SettingsError as error:
            _log.error("API keys not read again: %s", error)
        await asyncio.gather(*(model.reload() for model in self.models.values()))

    async def stop(self, seconds: float) -> None:
        """End all engines."""
        if self._watcher is not None:
            self._watcher.cancel()
        await asyncio.gather(*(model.stop(seconds) for model in self.models.values()))

    def find(self, name: str | None) -> ServedModel:
        """Return the model of a name.

        Raises:
            HttpFault: there is none.
        """
        found = self.models.get(self.settings.default_model if name is None else name)
        if found is None:
            near = get_close_matches(name or "", list(self.models), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is: {', '.join(self.models)}"
            raise HttpFault(404, f"no model of this name is served; {hint}", kind="ModelNotFound")
        return found

    def check_size(self, body: Body, model: ServedModel) -> float:
        """Refuse what is too much before it is tokenized.

        Returns:
            About how many tokens it has.

        Raises:
            HttpFault: nothing, too many inputs, or one with too many characters.
        """
        try:
            texts = list(body.texts())
            count = body.count()
        except ValueError as error:
            raise HttpFault(422, str(error)) from error
        if not count:
            raise HttpFault(400, "there is no input; send at least one")
        if count > self.settings.max_client_batch_size:
            raise HttpFault(
                422,
                f"the request has {count} inputs; allowed: {self.settings.max_client_batch_size}",
            )
        positions = int(model.info.get("max_input_length", 512))
        most = CHARACTERS_PER_TOKEN * positions
        tokens = 0.0
        for number, text in enumerate(texts):
            if len(text) > most:
                raise HttpFault(422, f"input {number} has {len(text)} characters; allowed: {most}")
            tokens += min(positions, 2 + len(text) / CHARACTERS)
        return tokens

    async def answer(
        self,
        body: Body,
        *,
        client: str,
        timeout: float | None,
        gone: Callable[[], Awaitable[None]],
    ) -> tuple[Reply, ServedModel]:
        """Answer a request.

        Args:
            body: the checked request.
            client: who sent it.
            timeout: seconds that the client gives it; None: those of the server.
            gone: ends when the client has gone.

        Raises:
            HttpFault: it cannot be answered, or not now.
            ClientGoneError: nobody waits any more.
        """
        model = self.find(body.model)
        if not model.is_ready:
            raise _not_ready()
        tokens = self.check_size(body, model)
        defaults = Defaults(model.name, self.settings.auto_truncate, self.settings.pooling)
        try:
            ticket = self.admission.enter(client, model.name, tokens, model.rate)
        except OverloadedError as error:
            self.metrics.rejected.add(1, error.reason)
            raise HttpFault(
                429, str(error), headers={"retry-after": str(error.retry_after)}
            ) from error
        limit = min(timeout or self.settings.timeout_seconds, self.settings.timeout_seconds)
        start = monotonic()
        work = asyncio.ensure_future(
            model.ask(
                body.operation,
                body.arguments(defaults),
                client=client,
                depth=body.depth or self.settings.depth,
                exit_when=body.exit or self._default_exit(model, body),
            )
        )
        watch = asyncio.ensure_future(gone())
        try:
            await asyncio.wait({work, watch}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                if watch.done():
                    raise ClientGoneError
                self.metrics.rejected.add(1, "deadline")
                raise HttpFault(504, f"the answer was not ready after {limit:g} s")
            reply = work.result()
        except RequestFailedError as error:
            if error.kind == "backend":
                self.metrics.not_finite.add(1, model.name)
                raise HttpFault(500, str(error), kind="Backend") from error
            raise HttpFault(422, str(error)) from error
        except EngineLostError as error:
            raise _not_ready() from error
        finally:
            for task in (work, watch):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Exception):
                        await task
            self.admission.leave(ticket)
        self.metrics.queue_seconds.observe(monotonic() - start - reply.compute, model.name)
        self.metrics.compute_seconds.observe(reply.compute, model.name)
        return reply, model

    def _default_exit(self, model: ServedModel, body: Body) -> str | None:
        """The server's exit rule, for answers that can leave early."""
        if body.operation != "predict" or "/predict" not in model.info.get("routes", ()):
            return None
        return self.settings.exit_when

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for model in self.models.values():
                await model.reload_if_changed()


def _not_ready() -> HttpFault:
    return HttpFault(
        503,
        "the model is being loaded; try again in a moment",
        headers={"retry-after": "1"},
    )
