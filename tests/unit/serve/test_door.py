from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import pytest

from litebert.serve import door as door_module
from litebert.serve.door import Door


class Taking(asyncio.Protocol):
    """The server's end: hands its transport out, and what comes to the door."""

    def __init__(self) -> None:
        self.made: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()
        self.lost = asyncio.Event()
        self.door: Door | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.made.set_result(transport)

    def data_received(self, data: bytes) -> None:
        if self.door is not None and self.door.is_lingering:
            self.door.throw_away(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


def within(
    talk: Callable[[Door, socket.socket, asyncio.Event], Awaitable[None]], *, is_sending: bool
) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        transport, taking = await loop.create_connection(Taking, sock=ours)
        taking.door = Door(transport, seconds=0.2, is_sending=lambda: is_sending)
        try:
            async with asyncio.timeout(20):
                await talk(taking.door, theirs, taking.lost)
        finally:
            taking.door.forget()
            if not taking.lost.is_set():
                transport.abort()
            theirs.close()
            await asyncio.sleep(0)

    asyncio.run(run())


def test_an_end_waits_until_all_is_taken() -> None:
    async def talk(door: Door, theirs: socket.socket, lost: asyncio.Event) -> None:
        door.write(b"a" * 1_000_000)
        door.close()
        assert door.is_closing()
        loop, size = asyncio.get_running_loop(), 0
        while part := await loop.sock_recv(theirs, 1 << 16):
            size += len(part)
        assert size == 1_000_000
        await lost.wait()

    within(talk, is_sending=False)


def test_who_takes_nothing_is_given_up() -> None:
    async def talk(door: Door, theirs: socket.socket, lost: asyncio.Event) -> None:
        del theirs
        door.write(b"a" * 10_000_000)
        door.close()
        door.close()
        await lost.wait()  # 0.2 s; without a clock it would stay for ever

    within(talk, is_sending=False)


def test_an_answer_is_read_by_who_still_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "LINGER_BYTES", 50_000)

    async def talk(door: Door, theirs: socket.socket, lost: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(theirs, b"b" * 20_000)
        door.write(b"no")
        door.close()
        assert door.is_lingering
        await loop.sock_sendall(theirs, b"b" * 20_000)
        assert await loop.sock_recv(theirs, 99) == b"no"
        assert await loop.sock_recv(theirs, 99) == b""
        assert not lost.is_set()
        with contextlib.suppress(ConnectionError):
            while not lost.is_set():  # but not for ever
                await loop.sock_sendall(theirs, b"b" * 10_000)
                await asyncio.sleep(0.01)
        await lost.wait()

    within(talk, is_sending=True)


def test_who_sends_on_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "LINGER_SECONDS", 0.1)

    async def talk(door: Door, theirs: socket.socket, lost: asyncio.Event) -> None:
        door.linger()
        door.linger()
        await lost.wait()

    within(talk, is_sending=True)
