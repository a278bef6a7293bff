"""Engines that are killed, and models that are exchanged, while clients ask."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from tests.serve_folders import make_folder

from benchmarks.attack.clients import Answer, Crowd, Question, ask, learn
from benchmarks.attack.models import vectors
from benchmarks.attack.server import Server

__all__ = ["killed_engines", "reloads"]

TIMES = 20
BACK_SECONDS = 2.0
READY = b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
METRICS = READY.replace(b"/ready", b"/metrics")


async def killed_engines(root: Path, *words: str) -> dict[str, Any]:
    """Kill the engine again and again; every second time one that stands still with work in hand.

    Args:
        root: folder to work in.
        words: further ones of the command.
    """
    server = Server(make_folder("embed", root / "models"), "--set", "watch=false", *words)
    try:
        return await _kill(server, TIMES)
    finally:
        server.kill()


async def _kill(server: Server, times: int) -> dict[str, Any]:
    asked = await learn(server.port, vectors(40))
    heard: list[tuple[float, int]] = []

    def hear(answer: Answer, seconds: float) -> None:
        # Asked after the kill and answered: the engine is back.
        heard.append((time.monotonic() - seconds, answer.status))

    crowd = Crowd(server.port, asked, clients=8, pause=0.04, allowed=(200, 503), on_answer=hear)
    back: list[float] = []
    held: list[int] = []
    for number in range(times):
        await asyncio.sleep(6)  # an engine that lives for five seconds is started again at once
        serving = await _serving(server, asked[0])
        if number % 2:
            os.kill(serving, signal.SIGSTOP)
            await asyncio.sleep(0.3)
        held.append(await _in_flight(server.port))
        start = time.monotonic()
        os.kill(serving, signal.SIGKILL)
        while not any(at > start and status == 200 for at, status in heard[-200:]):
            await asyncio.sleep(0.01)
        back.append(time.monotonic() - start)
    tally = await crowd.stop()
    code = server.end()
    slow = sum(seconds > BACK_SECONDS for seconds in back)
    return {
        "kills": times, "clients": tally.summary(), "in_flight_when_killed": held,
        "back_after_seconds": [round(seconds, 2) for seconds in back], "later_than_2_s": slow,
        "exit_code": code, "engines_left": len(server.engines()) if server.process.poll() is None else 0,
    }  # fmt: skip


async def _serving(server: Server, question: Question) -> int:
    """The engine that answers: its processor time grows most while it is asked."""
    if len(server.engines()) == 1:
        return server.engines()[0]
    before = {pid: _ticks(pid) for pid in server.engines()}
    for _ in range(60):
        await ask(server.port, question.raw("Connection: close"))
    return max(before, key=lambda pid: _ticks(pid) - before[pid])


def _ticks(pid: int) -> int:
    rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(rest[11]) + int(rest[12])


async def _in_flight(port: int) -> int:
    answer, _ = await ask(port, METRICS)
    lines = answer.body.decode().splitlines()
    return int(
        next(line for line in lines if line.startswith("litebert_requests_in_flight ")).split()[1]
    )


async def reloads(root: Path) -> dict[str, Any]:
    """Exchange the model under load, by good and by broken folders, one after the other."""
    versions = [make_folder("embed", root / f"models-{seed}", seed=seed) for seed in (1, 2)]
    folder = root / "served"
    shutil.copytree(versions[0], folder)
    server = Server(folder, "--set", "watch=false")
    try:
        return await _reload(server, folder, versions)
    finally:
        server.kill()


async def _reload(server: Server, folder: Path, versions: list[Path]) -> dict[str, Any]:
    first = await learn(server.port, vectors(30))
    _exchange(folder, versions[1])
    await _reloaded(server)
    second = await learn(server.port, vectors(30))
    both = [
        Question(a.path, a.body, (a.right[0], b.right[0]))
        for a, b in zip(first, second, strict=True)
    ]
    crowd = Crowd(server.port, both, clients=8, pause=0.04)
    now, stale = 1, 0
    rows: list[str] = []
    for number in range(TIMES):
        kind = "good" if number % 2 == 0 else BROKEN[number // 2 % len(BROKEN)]
        if kind == "good":
            now = 1 - now
            _exchange(folder, versions[now])
        else:
            _exchange(folder, versions[1 - now], kind)
        line = await _reloaded(server)
        await asyncio.sleep(0.5)
        answer, _ = await ask(server.port, both[0].raw("Connection: close"))
        right = (first, second)[now][0].right[0]
        far = max(abs(a - b) for row, other in zip(json.loads(answer.body), right, strict=True)
                  for a, b in zip(row, other, strict=True))  # fmt: skip
        # A broken folder changes nothing, a good one is what answers from now on.
        is_right = far < 1e-5 and ("not reloaded" in line) == (kind != "good")
        stale += not is_right
        rows.append(kind if is_right else f"{kind}: {line.strip()[-200:]}, off by {far:g}")
        if kind != "good":
            _exchange(folder, versions[now])
            await _reloaded(server)
    tally = await crowd.stop()
    await asyncio.sleep(2)
    engines = len(server.engines())
    code = server.end()
    return {
        "reloads": TIMES, "kinds": rows, "wrong": stale, "clients": tally.summary(),
        "engines_left": engines, "exit_code": code,
    }  # fmt: skip


async def _reloaded(server: Server) -> str:
    """Have it reload; return the line that says how it went."""
    server.process.send_signal(signal.SIGHUP)
    return await asyncio.to_thread(server.wait_for, "not reloaded|: reloaded")


BROKEN = (
    "short graph",
    "no description",
    "no graph",
    "random bytes",
    "gone",
    "no tokenizer",
    "no configuration",
)


def _exchange(folder: Path, other: Path, kind: str = "good") -> None:
    """Put another export in place of the one that is there, as `export --overwrite` does, and spoil it."""
    fresh, old = folder.parent / "fresh", folder.parent / "old"
    shutil.copytree(other, fresh)
    graph = fresh / "onnx" / "litebert.onnx"
    if kind == "short graph":
        graph.write_bytes(graph.read_bytes()[:-9])
    elif kind == "random bytes":
        graph.write_bytes(random.Random(1).randbytes(20_000))
    elif kind in ("no graph", "no description", "no tokenizer", "no configuration"):
        names = {"no graph": ("onnx/litebert.onnx",), "no description": ("export.json",),
                 "no tokenizer": ("tokenizer.json", "spiece.model"), "no configuration": ("config.json",)}  # fmt: skip
        for name in names[kind]:
            (fresh / name).unlink()
    if folder.exists():
        folder.rename(old)
        shutil.rmtree(old)
    if kind == "gone":
        shutil.rmtree(fresh)
    else:
        fresh.rename(folder)
