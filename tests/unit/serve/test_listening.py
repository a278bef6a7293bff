"""The socket that a server listens on."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from litebert.serve.server import _listen  # pyright: ignore[reportPrivateUsage]
from litebert.serve.settings import ServeSettings


def test_answers_are_sent_at_once() -> None:
    """Else the body of each answer waits 40 ms for the client to acknowledge its header."""
    sock = _listen(ServeSettings(models={"m": Path("m")}, port=0))

    async def accepted() -> int:
        found: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()

        class Guest(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                found.set_result(transport.get_extra_info("socket"))

        server = await asyncio.get_running_loop().create_server(Guest, sock=sock)
        with socket.create_connection(sock.getsockname()):
            guest = await found
            value = guest.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        server.close()
        return value

    assert sock.proto == socket.IPPROTO_TCP
    assert asyncio.run(accepted()) != 0
