"""A `litebert serve` as a process of its own, and what it holds: memory, files, threads."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path

from litebert.errors import LitebertError

__all__ = ["Server", "ServerEndedError"]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
"""Seconds for whatever must come at some time."""


class ServerEndedError(LitebertError, RuntimeError):
    """The server ended, or did not say in time what was waited for."""


class Server:
    """A running server on a free port."""

    def __init__(self, *words: object, quiet: bool = True) -> None:
        """Start it and wait until its models are loaded.

        Args:
            words: of the command, behind `litebert serve`.
            quiet: no line about each request.
        """
        silent = ("--set", "access_log=false") if quiet else ()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "litebert", "serve", *map(str, words), "--port", "0", *silent],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.lines: deque[str] = deque(maxlen=200)
        self._news: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.port = int(self.wait_for(r"^serving ").rsplit(":", 1)[1])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            self._news.put(line)
        self._news.put(None)

    def wait_for(self, pattern: str, seconds: float = PATIENCE) -> str:
        """Return the first new line that fits.

        Raises:
            ServerEndedError: there is none.
        """
        end = time.monotonic() + seconds
        while True:
            try:
                line = self._news.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise ServerEndedError("\n".join([f"no line {pattern!r}", *self.lines]))
            if re.search(pattern, line):
                return line

    def engines(self) -> list[int]:
        """Numbers of the engine processes."""
        found: list[int] = []
        for task in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            found += [int(number) for number in task.read_text().split()]
        return found

    def holds(self) -> dict[str, float]:
        """Memory of server and engines in MB, open files and threads of the server."""
        pid = self.process.pid
        return {
            "server_mb": _resident(pid),
            "engines_mb": round(sum(map(_resident, self.engines())), 2),
            "files": len(os.listdir(f"/proc/{pid}/fd")),  # noqa: PTH208 - no paths are needed
            "threads": len(os.listdir(f"/proc/{pid}/task")),  # noqa: PTH208
        }

    def end(self) -> int:
        """Tell it to end; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0  # it ended meanwhile
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 2)
