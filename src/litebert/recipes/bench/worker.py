"""One back-end in a process of its own: loads, gives a first answer, then measures on command.

Run as `python -m litebert.recipes.bench.worker ENGINE PATH THREADS`; JSON lines in and out.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import IO, Any

import numpy as np

from litebert.recipes.bench.engines import ENGINES, Engine, PaddedEngine

__all__ = ["memory", "serve"]


def memory() -> dict[str, float | None]:
    """Return what this process holds now and held at most, in megabytes; None where unknown."""
    try:
        words = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return {"rss_mb": None, "peak_rss_mb": None}
    now, most = (int(words[words.index(name) + 1]) / 1024 for name in ("VmRSS:", "VmHWM:"))
    return {"rss_mb": round(now, 1), "peak_rss_mb": round(most, 1)}


def serve(engine: Engine, commands: IO[str], answers: IO[str]) -> None:
    """Answer commands until they end."""
    for line in commands:
        wanted: dict[str, Any] = json.loads(line)
        rng = np.random.default_rng(wanted["seed"])
        top = wanted["vocabulary"]
        sequences = [rng.integers(5, top, length) for length in wanted["lengths"]]
        if isinstance(engine, PaddedEngine):
            engine.is_sorted = wanted["is_sorted"]
        start = time.perf_counter()
        engine.run(sequences)
        _write(answers, {"seconds": time.perf_counter() - start} | memory())


def _write(stream: IO[str], values: dict[str, Any]) -> None:
    stream.write(json.dumps(values) + "\n")
    stream.flush()


def main(arguments: list[str]) -> None:
    """Run a worker; libraries that print do so on standard error."""
    name, path, threads = arguments
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    engine = ENGINES.get(name)(Path(path), int(threads))
    engine.first()
    _write(answers, {"ready": True} | memory())
    serve(engine, sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
