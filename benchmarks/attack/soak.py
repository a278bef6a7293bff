"""Ten minutes of everything at once: all routes, clients that go away, requests that are wrong, slow ones."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from pathlib import Path
from typing import Any

from benchmarks.attack.clients import Crowd, learn
from benchmarks.attack.models import make_models, questions
from benchmarks.attack.raw import ROWS, send
from benchmarks.attack.server import Server

__all__ = ["soak"]

SAMPLES = 10
LEFT_OUT = ("20 MB", "single bytes", "more chunks", "huge header", "a million")
"""Rows that cost the clients more than the server."""


async def soak(root: Path, seconds: float) -> dict[str, Any]:
    """Sample memory, files and threads; growth is counted from the end of the first part in ten."""
    folders = make_models(root)
    server = Server(*(f"{k}={v}" for k, v in folders.items()), quiet=False)
    rows: list[dict[str, float]] = []
    rng = random.Random(9)
    wrong = [row for row in ROWS if not any(words in row[0] for words in LEFT_OUT)]
    sent = hung = 0
    off: list[str] = []
    is_over = False

    async def spoil() -> None:
        nonlocal sent, hung
        while not is_over:
            name, steps, expected = rng.choice(wrong)
            with contextlib.suppress(OSError):
                came, took = await asyncio.to_thread(send, server.port, steps, 20.0)
                sent += 1
                hung += took is None
                told = " ".join(map(str, came))
                if told not in expected.split("|"):
                    off.append(f"{name}: {told}, after {took} s")
            await asyncio.sleep(0.2)

    try:
        asked = await learn(server.port, questions())
        crowd = Crowd(server.port, asked, clients=5, pause=0.04, cancels=0.1)
        spoilers = [asyncio.create_task(spoil()) for _ in range(2)]
        start = time.monotonic()
        for number in range(SAMPLES + 1):
            await asyncio.sleep(max(0.0, start + number * seconds / SAMPLES - time.monotonic()))
            rows.append({"minute": round(number * seconds / SAMPLES / 60, 1), **server.holds()})
            print(rows[-1], flush=True)
        is_over = True
        tally = await crowd.stop()
        await asyncio.gather(*spoilers)
        await asyncio.sleep(12)  # connections that were kept are closed
        after = server.holds()
        engines = len(server.engines())
        code = server.end()
    finally:
        server.kill()
    first, last = rows[1], rows[-1]
    return {
        "clients": tally.summary(), "malformed": {"sent": sent, "wrong": len(off), "hung": hung, "notes": off[:8]},
        "samples": rows, "after": after, "engines": engines, "exit_code": code,
        "growth": {name: round(last[name] - first[name], 2) for name in first if name != "minute"},
        "growth_percent": {
            name: round(100 * (last[name] / first[name] - 1), 1) for name in ("server_mb", "engines_mb")
        },
        "tracebacks": sum("Traceback" in line for line in server.lines),
    }  # fmt: skip
