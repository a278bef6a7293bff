"""Load on the loopback: `litebert serve` beside the server that one writes first, and beyond capacity.

`python -m benchmarks.serve EXPORT --model FOLDER [--seconds 15]`: EXPORT is a classifier that `litebert export
onnx` made with plain graphs from FOLDER. Servers take turns, so that a busy machine is as busy for all; on such
a machine the processor time of a request says more than the clock: many threads take more of a shared processor.
Results go to `benchmarks/results/serve.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "serve.json"
SHAPES = ((1, 1), (8, 1), (64, 1), (8, 16))
"""Clients at once, and texts of a request."""
QUEUES = {"default": 5.0, "short": 0.25}
"""Values of `max_queue_seconds`."""
WORDS = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "it",
    "was",
    "for",
    "on",
    "are",
    "as",
    "with",
    "they",
    "be",
    "at",
    "one",
    "have",
    "this",
    "from",
)


@dataclass
class Load:
    """What clients got."""

    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Throughput, and percentiles of what was answered with 200."""
        good = sorted(self.latencies)
        return {
            "requests_per_second": round(len(good) / self.seconds, 2),
            "p50_ms": round(1000 * statistics.median(good), 1) if good else None,
            "p99_ms": round(1000 * good[int(0.99 * (len(good) - 1))], 1) if good else None,
            "statuses": dict(self.statuses),
        }


def bodies(seed: int, count: int = 512, texts: int = 1) -> list[bytes]:
    """Requests of so many texts: mostly short, some long, as sentences and messages are."""
    rng = random.Random(seed)

    def text() -> str:
        words = max(1, min(300, round(rng.lognormvariate(2.7, 0.9))))
        return " ".join(rng.choice(WORDS) for _ in range(words))

    return [json.dumps({"inputs": [text() for _ in range(texts)]}).encode() for _ in range(count)]


async def request(port: int, body: bytes, streams: Any = None) -> tuple[str, Any]:
    """Send one request; return its status and the connection, if it can be used again."""
    reader, writer = streams or await asyncio.open_connection("127.0.0.1", port)
    head = (
        "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    lines = answer.decode("latin-1").lower().split("\r\n")
    length = next(int(x.partition(":")[2]) for x in lines if x.startswith("content-length"))
    await reader.readexactly(length)
    if "connection: close" in lines:
        writer.close()
        return lines[0].split()[1], None
    return lines[0].split()[1], (reader, writer)


async def closed_loop(port: int, clients: int, seconds: float, texts: int = 1) -> Load:
    """Clients that ask again as soon as they are answered."""
    load, end = Load(), time.perf_counter() + seconds

    async def client(number: int) -> None:
        streams, sent = None, bodies(number, 64, texts)
        await asyncio.sleep(0.01 * number / clients)
        while (start := time.perf_counter()) < end:
            status, streams = await request(port, sent[int(start * 1e6) % len(sent)], streams)
            load.statuses[status] += 1
            if status == "200":
                load.latencies.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    load.seconds = time.perf_counter() - start
    return load


async def open_loop(port: int, rate: float, seconds: float) -> Load:
    """Requests that come at random times, whatever becomes of those before."""
    load, texts, rng = Load(), bodies(7), random.Random(1)
    idle: list[Any] = []
    tasks: list[asyncio.Task[None]] = []

    async def one(body: bytes) -> None:
        begin = time.perf_counter()
        used = idle.pop() if idle else None
        try:
            try:
                status, streams = await request(port, body, used)
            except (OSError, asyncio.IncompleteReadError):
                if used is None:
                    raise
                # A connection that was idle may be closed meanwhile; clients then take a new one.
                status, streams = await request(port, body)
        except (OSError, asyncio.IncompleteReadError):
            load.statuses["lost"] += 1
            return
        if streams:
            idle.append(streams)
        load.statuses[status] += 1
        if status == "200":
            load.latencies.append(time.perf_counter() - begin)

    start = time.perf_counter()
    due = start
    while due < start + seconds:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(rng.choice(texts))))
        due += rng.expovariate(rate)
    await asyncio.gather(*tasks)
    load.seconds = time.perf_counter() - start
    return load


class Running:
    """A server as a process."""

    def __init__(self, words: list[str], port: int) -> None:
        self.port = port
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=ROOT, stderr=subprocess.DEVNULL
        )

    async def ready(self) -> None:
        """Wait until it answers."""
        for _ in range(1200):
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = await reader.read()
                writer.close()
                if b" 200 " in answer[:20]:
                    return
            except OSError:
                pass
            await asyncio.sleep(0.1)
        raise SystemExit("a server does not start")

    def pids(self) -> list[int]:
        """The server and its engines."""
        found = [self.process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(n) for n in task.read_text().split()]
        return found

    def memory(self) -> int:
        """Resident bytes."""
        return sum(
            int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 for pid in self.pids()
        )

    def processor(self) -> float:
        """Seconds of processor time that were used so far."""
        ticks = 0
        for pid in self.pids():
            rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(rest[11]) + int(rest[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    async def closed(self, clients: int, seconds: float, texts: int) -> dict[str, Any]:
        """Measure it with clients that ask again as soon as they are answered."""
        before = self.processor()
        load = await closed_loop(self.port, clients, seconds, texts)
        used = self.processor() - before
        answered = max(1, len(load.latencies))
        return load.summary() | {"processor_ms_per_request": round(1000 * used / answered, 1)}

    def end(self) -> int:
        """Tell it to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def start(export: Path, model: Path | None) -> dict[str, Running]:
    """Start the servers: ours, ours with a short queue, and those that one writes first."""
    quiet = ["--set", "access_log=false", "--set", "watch=false"]
    graph = "onnx/model_quantized.onnx"

    def ours(*more: str) -> Running:
        port = free_port()
        return Running(["litebert", "serve", str(export), "--port", str(port), *quiet, *more], port)

    def plain(*words: str) -> Running:
        port = free_port()
        return Running(["benchmarks.serve_plain", str(port), *words], port)

    found = {
        "litebert": ours(),
        "onnx": plain("onnx", str(export), graph),
        "onnx_padded_to_128": plain("onnx", str(export), graph, "--pad", "128"),
    }
    if model is not None:
        found["transformers"] = plain("transformers", str(model))
    return found


async def measure(export: Path, model: Path | None, seconds: float) -> dict[str, Any]:
    """Measure everything; servers take turns."""
    servers = start(export, model)
    result: dict[str, Any] = {"cpus": os.cpu_count(), "load_average": os.getloadavg()[0]}
    try:
        for server in servers.values():
            await server.ready()
            await closed_loop(server.port, 2, 2.0)
        for clients, texts in SHAPES:
            row: dict[str, Any] = {}
            for name, server in servers.items():
                row[name] = await server.closed(clients, seconds, texts)
            for key, name in (("requests_per_second", "throughput"),
                              ("processor_ms_per_request", "processor_time")):  # fmt: skip
                row[f"{name}_ratios"] = {
                    other: round(row["litebert"][key] / max(row[other][key], 1e-9), 2)
                    for other in servers
                    if other != "litebert"
                }
            result[f"clients_{clients}_texts_{texts}"] = row
            print(clients, texts, json.dumps(row), flush=True)
        capacity = result["clients_8_texts_1"]["litebert"]["requests_per_second"]
        for server in servers.values():
            result.setdefault("exit_codes", []).append(server.end())
        result["overload"] = {
            name: await overload(export, capacity, seconds, bound) for name, bound in QUEUES.items()
        }
    finally:
        for server in servers.values():
            if server.process.poll() is None:
                result.setdefault("exit_codes", []).append(server.end())
    return result


async def overload(export: Path, capacity: float, seconds: float, bound: float) -> dict[str, Any]:
    """Ask for four times of what can be answered, and see what becomes of those who are let in.

    Args:
        export: the model.
        capacity: requests a second that can be answered.
        seconds: of each part.
        bound: `max_queue_seconds`.
    """
    port = free_port()
    server = Running(
        ["litebert", "serve", str(export), "--port", str(port), "--set", "access_log=false", "--set",
         f"max_queue_seconds={bound}"], port)  # fmt: skip
    result: dict[str, Any] = {
        "max_queue_seconds": bound,
        "offered_at_4_times": round(4 * capacity, 1),
    }
    try:
        await server.ready()
        await closed_loop(port, 4, 3.0)
        before = server.memory()
        for name, share in (("at_80_percent", 0.8), ("at_4_times", 4.0)):
            result[name] = (await open_loop(port, share * capacity, seconds)).summary()
        begin = time.perf_counter()
        status, _ = await request(port, bodies(1)[0])
        result["recovery_seconds"] = round(time.perf_counter() - begin, 3)
        result["recovery_status"] = status
        result["memory_growth"] = round(server.memory() / before - 1, 4)
        result["p99_ratio"] = round(
            result["at_4_times"]["p99_ms"] / max(result["at_80_percent"]["p99_ms"], 1e-9), 2
        )
    finally:
        result["exit_code"] = server.end()
    print("overload", json.dumps(result), flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("export", type=Path)
    parser.add_argument("--model", type=Path, help="the same model as a folder of transformers")
    parser.add_argument("--seconds", type=float, default=15.0)
    told = parser.parse_args()
    model = None if told.model is None else told.model.resolve()
    result = asyncio.run(measure(told.export.resolve(), model, told.seconds))
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
