"""Three hundred clients that are slow on purpose: with headers, with bodies, with taking the answer."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import socket
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.attack.clients import Question, beside, learn
from benchmarks.attack.models import make_models, vectors
from benchmarks.attack.server import Server

__all__ = ["slow_clients"]

EACH = 60
"""Sockets of each of the five kinds."""
STATED = {
    # Seconds after which each kind must be gone: what the server is told, and 3 s of grace. 10 s for a header or a
    # slow body; twice that for a body that stops in its middle; 30 s for an answer, when all 60 are written.
    "silent": 13.0, "header": 13.0, "body": 13.0, "stopped body": 23.0, "reader": 45.0,
}  # fmt: skip
POST = (
    b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 900000\r\n\r\n"
)


async def _slow(port: int, kind: str) -> tuple[str, float | None]:
    """Be slow until the server ends it; return the kind and the seconds it took, None: too many."""
    loop, start = asyncio.get_running_loop(), time.monotonic()
    sock = socket.socket()
    sock.setblocking(False)
    if kind == "reader":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    try:
        await loop.sock_connect(sock, ("127.0.0.1", port))
        if kind == "reader":
            # What is not taken fills the buffers of both sides.
            await loop.sock_sendall(
                sock, b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 60
            )
        if "body" in kind:
            await loop.sock_sendall(sock, POST + b" " * 600_000 * (kind == "stopped body"))
        while time.monotonic() - start < 2 * STATED[kind]:
            await asyncio.sleep(0.5)
            if _is_ended(sock):
                return kind, time.monotonic() - start
            with contextlib.suppress(BlockingIOError):
                if kind == "header":
                    sock.send(b"G" if time.monotonic() - start < 3 else b"E")
                if kind == "body":
                    sock.send(b" ")
        return kind, None
    except ConnectionError:
        return kind, time.monotonic() - start
    finally:
        sock.close()


def _is_ended(sock: socket.socket) -> bool:
    """Whether the other side has ended the connection; what it sent before is not taken."""
    state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state not in (1, 2, 3)  # established, and on the way to it


def attack(port: int) -> list[tuple[str, float | None]]:
    """Be slow in all five ways at once; in a process of its own, which takes no time from other clients."""

    async def all_of_them() -> list[tuple[str, float | None]]:
        kinds = [kind for kind in STATED for _ in range(EACH)]
        return await asyncio.gather(*(_slow(port, kind) for kind in kinds))

    return asyncio.run(all_of_them())


async def slow_clients(root: Path) -> dict[str, Any]:
    """Measure ordinary clients without and with the slow ones, and what the server holds afterwards; twice."""
    folder = make_models(root)["embed"]
    server = Server(folder, "--set", "watch=false")
    held: dict[str, Any] = {}
    waves: list[dict[str, Any]] = []
    try:
        asked = await learn(server.port, vectors(40))
        async with beside(server.port, asked, clients=4, pause=0.03) as alone:
            await asyncio.sleep(30)
        await asyncio.sleep(7)  # connections that were kept are closed by now
        held["before"] = server.holds()
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            for number in (1, 2):
                async with beside(server.port, asked, clients=4, pause=0.03) as tally:
                    ended = asyncio.get_running_loop().run_in_executor(pool, attack, server.port)
                    await asyncio.sleep(9)
                    held[f"during_{number}"] = server.holds()
                    row = _told(await ended)
                waves.append({**row, "clients_beside": tally.summary()})
                await asyncio.sleep(7)
                held[f"after_{number}"] = server.holds()
        full = await _full(folder, asked)
        code = server.end()
    finally:
        server.kill()
    return {
        "sockets": EACH * len(STATED), "clients_alone": alone.summary(), "waves": waves, "held": held,
        "all_places_taken": full, "exit_code": code,
    }  # fmt: skip


def _told(ended: list[tuple[str, float | None]]) -> dict[str, Any]:
    late = Counter(kind for kind, took in ended if took is None or took > STATED[kind])
    return {
        kind: {
            "sockets": EACH,
            "stated_seconds": STATED[kind],
            "last_dropped_after": max((round(t, 1) for k, t in ended if k == kind and t is not None), default=None),
            "hung": late[kind],
        }
        for kind in STATED
    }  # fmt: skip


async def _full(folder: Path, asked: list[Question]) -> dict[str, Any]:
    """Take more connections than the server has places for; others must still be let in."""
    server = Server(
        folder,
        "--set",
        "watch=false",
        "--set",
        "max_connections=100",
        "--set",
        "max_reading_bytes=5000000",
    )
    try:
        socks = []
        async with beside(server.port, asked, clients=2, pause=0.03, keeps=0.0) as tally:
            for _ in range(300):
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                socks.append(writer)
                await asyncio.sleep(0.005)
            await asyncio.sleep(1)
        for writer in socks:
            writer.close()
        # Bodies that stop in their middle take all the room that there is for bodies.
        async with beside(
            server.port, asked, clients=2, pause=0.03, keeps=0.0, allowed=(200, 429)
        ) as bodies:
            for _ in range(12):
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(POST + b" " * 800_000)
                socks.append(writer)
            await asyncio.sleep(4)
        for writer in socks:
            writer.close()
        server.end()
    finally:
        server.kill()
    return {
        "sockets": 300,
        "places": 100,
        "clients": tally.summary(),
        "clients_beside_stopped_bodies": bodies.summary(),
    }
