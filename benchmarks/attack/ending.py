"""Servers that are told to end while clients ask: nothing that was let in is lost, and the exit code is 0."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.serve_folders import make_folder

from benchmarks.attack.clients import Crowd, Question, learn
from benchmarks.attack.models import vectors
from benchmarks.attack.server import Server

__all__ = ["endings"]

CYCLES = 50
LANES = 3
"""Servers at one moment: most of a cycle is the start."""


@dataclass
class _Found:
    """What all cycles found."""

    answers: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    engines_left: int = 0


async def endings(root: Path) -> dict[str, Any]:
    """Start a server, ask, tell it to end: every fifth time with an engine that stands still for half a second.

    Every seventh time it ends with open connections that say nothing, or only half of a header.
    """
    folder = make_folder("embed", root / "models")
    found, numbers = _Found(), iter(range(CYCLES))
    first = await asyncio.to_thread(Server, folder, "--set", "watch=false")
    asked = await learn(first.port, vectors(40))
    first.end()

    async def lane() -> None:
        for number in numbers:
            await _cycle(folder, asked, number, found)

    await asyncio.gather(*(lane() for _ in range(LANES)))
    took = sorted(found.seconds)
    return {
        "cycles": CYCLES, "lost": found.faults["lost"], "wrong": found.faults["wrong"] + found.engines_left,
        "hung": found.faults["hung"], "answers": dict(found.answers), "exit_codes": dict(found.codes),
        "engines_left": found.engines_left, "seconds_to_end_median": round(took[len(took) // 2], 2),
        "seconds_to_end_most": round(took[-1], 2), "notes": found.notes[:8],
    }  # fmt: skip


async def _cycle(folder: Path, asked: list[Question], number: int, found: _Found) -> None:
    rng, is_still = random.Random(number), number % 5 == 4
    server = await asyncio.to_thread(Server, folder, "--set", "watch=false")
    try:
        crowd = Crowd(server.port, asked, clients=8, pause=0.01)
        await asyncio.sleep(0.3 + 0.7 * rng.random())
        mute = [
            socket.create_connection(("127.0.0.1", server.port))
            for _ in range(8 * (number % 7 == 6))
        ]
        for sock in mute[:4]:
            sock.sendall(b"POST /embed HT")
        engine = server.engines()[0]
        if is_still:
            os.kill(engine, signal.SIGSTOP)
            await asyncio.sleep(0.2)
        crowd.is_closed = True
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        if is_still:
            await asyncio.sleep(0.5)
            os.kill(engine, signal.SIGCONT)
        code = await asyncio.to_thread(server.process.wait, 60)
        found.seconds.append(time.monotonic() - start)
        found.codes[str(code)] += 1
        tally = await crowd.stop()
        for sock in mute:
            sock.close()
    finally:
        server.kill()
    found.answers += tally.statuses
    found.notes += [f"cycle {number}: {note}" for note in tally.notes]
    for name in ("lost", "wrong", "hung"):
        found.faults[name] += getattr(tally, name)
    found.faults["wrong"] += code != 0
    found.engines_left += _is_running(engine)


def _is_running(pid: int) -> bool:
    """Whether an engine was left behind."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
