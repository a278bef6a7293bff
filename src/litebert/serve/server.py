"""The process: listens, loads, reacts to signals, and ends without losing a request.

SIGTERM and SIGINT: `/ready` says no, connections are closed after their answers, and when all are
answered, or time is up, the process ends with 0. A second one ends it at once. SIGHUP reloads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable, Generator
from typing import Final

import uvicorn

from litebert.errors import LitebertError
from litebert.serve.app import make_app
from litebert.serve.guard import Guard
from litebert.serve.logs import set_up_logging
from litebert.serve.memory import give_back_freed_memory
from litebert.serve.protocol import ConnectionLimits, guarded_protocol
from litebert.serve.service import Service
from litebert.serve.settings import ServeSettings

__all__ = ["PortUnavailableError", "serve"]

_log = logging.getLogger("litebert.serve")

LAME_SECONDS: Final = 0.3
"""Between saying no to `/ready` and closing the door: who has just come in is still let in."""
_SPARE_FILES: Final = 64


class PortUnavailableError(LitebertError, OSError):
    """The address cannot be listened on."""

    exit_code = 69


class _Server(uvicorn.Server):
    """uvicorn without its signals: ours come first, and the exit code is 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals alone."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let in who stands at the door, close it, and go on as uvicorn does."""
        guests = [guest for sock in sockets or [] for guest in _standing(sock)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for guest in guests:
            await loop.connect_accepted_socket(self._protocol, guest)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        kind = self.config.http_protocol_class
        return kind(config=self.config, server_state=self.server_state, app_state={})  # type: ignore[call-arg]


def serve(settings: ServeSettings, on_listening: Callable[[str], None]) -> None:
    """Serve until a signal ends it.

    Args:
        settings: what and where.
        on_listening: told the address when the models are loaded.

    Raises:
        PortUnavailableError: the address cannot be listened on.
        LitebertError: a model cannot be served.
    """
    set_up_logging(is_json=settings.json_logs)
    give_back_freed_memory()
    service = Service(settings)
    sock = _listen(settings)
    try:
        asyncio.run(_serve(settings, service, sock, on_listening))
    except* LitebertError as group:
        raise _first(group) from None
    finally:
        sock.close()


async def _serve(
    settings: ServeSettings,
    service: Service,
    sock: socket.socket,
    on_listening: Callable[[str], None],
) -> None:
    guard = make_app(service)
    server = _Server(_config(settings, guard))
    ending = _handle_signals(server, service)
    running = asyncio.create_task(server.serve(sockets=[sock]))
    loading = asyncio.create_task(service.start())
    try:
        await asyncio.wait({running, loading, ending}, return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            loading.result()
            on_listening(_address(settings, sock))
            await asyncio.wait({running, ending}, return_when=asyncio.FIRST_COMPLETED)
        service.is_draining = guard.is_draining = True
        _log.info("ending: %d requests are still answered", len(service.admission))
        await asyncio.sleep(LAME_SECONDS)
    finally:
        loading.cancel()
        ending.cancel()
        server.should_exit = True
        await asyncio.wait({running})
        await service.stop(1.0)
    _log.info("ended")


def _config(settings: ServeSettings, app: Guard) -> uvicorn.Config:
    limits = ConnectionLimits(
        header_bytes=settings.max_header_bytes,
        header_seconds=settings.header_seconds,
        body_rate=settings.body_bytes_per_second,
        connections=_most_connections(settings.max_connections),
    )
    return uvicorn.Config(
        app,
        http=guarded_protocol(limits),
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # uvicorn counts in whole seconds, and the engine ends after it.
        timeout_keep_alive=max(1, round(settings.keep_alive_seconds)),
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
    )


def _handle_signals(server: uvicorn.Server, service: Service) -> asyncio.Future[None]:
    """Return what is done when the server is told to end."""
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[None] = loop.create_future()
    reloads: set[asyncio.Task[None]] = set()

    def end() -> None:
        if ending.done():
            server.force_exit = True
            os._exit(1)
        ending.set_result(None)

    def reload() -> None:
        task = asyncio.create_task(service.reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    for number, action in ((signal.SIGTERM, end), (signal.SIGINT, end), (signal.SIGHUP, reload)):
        loop.add_signal_handler(number, action)
    return ending


def _standing(sock: socket.socket) -> Generator[socket.socket]:
    """Yield connections that were made and not taken yet; closing the door would reset them."""
    while True:
        try:
            guest, _ = sock.accept()
        except OSError:
            return
        guest.setblocking(False)
        yield guest


def _listen(settings: ServeSettings) -> socket.socket:
    """Return the listening socket.

    Raises:
        PortUnavailableError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sends at once only on sockets that say they are TCP; on others the body of an answer waits
    # for the client to acknowledge its header, 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((settings.host, settings.port))
        sock.listen(2048)
    except OSError as error:
        sock.close()
        reason = error.strerror or str(error)
        raise PortUnavailableError(
            f"cannot listen on {settings.host}:{settings.port}: {reason}; choose another port with "
            "--port, or 0 for any that is free"
        ) from None
    sock.setblocking(False)
    return sock


def _address(settings: ServeSettings, sock: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{sock.getsockname()[1]}"


def _most_connections(wanted: int) -> int:
    """As many as wanted, or as the system allows files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = wanted + _SPARE_FILES
    if soft < need:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(need, hard), hard))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, min(wanted, soft - _SPARE_FILES))


def _first(group: BaseExceptionGroup[LitebertError]) -> LitebertError:
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    raise AssertionError
