"""Servers that are told to end while clients ask: nothing that was let in is lost, and the exit code is 0."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.serve_folders import make_folder

from benchmarks.attack.clients import Crowd, learn
from benchmarks.attack.models import vectors
from benchmarks.attack.server import Server

__all__ = ["endings"]

CYCLES = 50


async def endings(root: Path) -> dict[str, Any]:
    """Start a server, ask, tell it to end; every fifth time with an engine that stands still for half a second.

    Every seventh time it ends with open connections that say nothing, or only half of a header.
    """
    folder = make_folder("embed", root / "models")
    rng, codes, took = random.Random(2), Counter[str](), []
    counts: Counter[str] = Counter()
    totals = {"lost": 0, "wrong": 0, "hung": 0}
    notes: list[str] = []
    asked = None
    for number in range(CYCLES):
        server = Server(folder, "--set", "watch=false")
        try:
            asked = asked or await learn(server.port, vectors(40))
            crowd = Crowd(server.port, asked, clients=8, pause=0.01)
            await asyncio.sleep(0.3 + 0.7 * rng.random())
            mute = [
                socket.create_connection(("127.0.0.1", server.port))
                for _ in range(8 * (number % 7 == 6))
            ]
            for sock in mute[:4]:
                sock.sendall(b"POST /embed HT")
            engine = server.engines()[0]
            if number % 5 == 4:
                os.kill(engine, signal.SIGSTOP)
                await asyncio.sleep(0.2)
            crowd.is_closed = True
            start = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            if number % 5 == 4:
                await asyncio.sleep(0.5)
                os.kill(engine, signal.SIGCONT)
            codes[str(await asyncio.to_thread(server.process.wait, 60))] += 1
            took.append(time.monotonic() - start)
            tally = await crowd.stop()
            for sock in mute:
                sock.close()
        finally:
            server.kill()
        counts += tally.statuses
        notes += tally.notes
        for name in totals:
            totals[name] += getattr(tally, name)
        totals["wrong"] += Path(f"/proc/{engine}/stat").exists() and _is_running(engine)
    took.sort()
    return {
        "cycles": CYCLES, **totals, "answers": dict(counts), "exit_codes": dict(codes),
        "not_zero": CYCLES - codes["0"], "seconds_to_end_median": round(took[len(took) // 2], 2),
        "seconds_to_end_most": round(took[-1], 2), "notes": notes[:8],
    }  # fmt: skip


def _is_running(pid: int) -> bool:
    """Whether an engine was left behind."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
