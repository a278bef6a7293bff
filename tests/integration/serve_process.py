"""A real `litebert serve` on the loopback, and plain clients of it."""

from __future__ import annotations

import http.client
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 120.0
"""For a machine that does other things as well."""


class ServeProcess:
    """A running server."""

    def __init__(self, *arguments: object, variables: Mapping[str, str] | None = None) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "litebert", "serve", *map(str, arguments), "--port", "0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment,
            text=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self._news: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            self._news.put(line)
        self._news.put(None)

    def wait_for(self, pattern: str) -> str:
        """Return the first new line that fits."""
        while True:
            line = self._news.get(timeout=PATIENCE_SECONDS)
            if line is None:
                raise AssertionError("\n".join(self.lines[-20:]))
            if re.search(pattern, line):
                return line

    def wait_until_serving(self) -> ServeProcess:
        """Wait until the models are loaded."""
        line = self.wait_for(r"^serving ")
        self.port = int(line.rsplit(":", 1)[1])
        return self

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """All that it said."""
        return "\n".join(self.lines)

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        method: str = "",
        source: str = "127.0.0.1",
    ) -> tuple[int, Any, dict[str, str]]:
        """Return status, body and headers of one request on a connection of its own."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=PATIENCE_SECONDS, source_address=(source, 0)
        )
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {} if data is None else {"content-type": "application/json"}
        try:
            connection.request(
                method or ("GET" if data is None else "POST"),
                path,
                data,
                {**sent, **(headers or {})},
            )
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        names = {name.lower(): value for name, value in reply.getheaders()}
        is_json = names.get("content-type", "").startswith("application/json")
        return reply.status, json.loads(content) if is_json and content else content, names

    def raw(self, data: bytes, *, wait: float = 10.0) -> bytes:
        """Send bytes; return all that comes before the server closes, or `wait` seconds are over."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as sock:
            sock.sendall(data)
            return everything(sock, wait)

    def metric(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        _, text, _ = self.ask("/metrics")
        rows = [line for line in text.decode().splitlines() if re.match(rf"{name}(\{{| )", line)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in rows)

    def engines(self) -> list[int]:
        """Numbers of the engine processes."""
        found: list[int] = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            found += [int(n) for n in (task / "children").read_text().split()]
        return found

    def wait_until_ready(self, seconds: float = PATIENCE_SECONDS) -> float:
        """Return the seconds until `/ready` says yes."""
        start = time.monotonic()
        while self.ask("/ready")[0] != 200:
            assert time.monotonic() - start < seconds
            time.sleep(0.02)
        return time.monotonic() - start

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_SECONDS)
        self.kill()
        return code

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


def everything(sock: socket.socket, wait: float) -> bytes:
    """Return what comes until the other side closes, or `wait` seconds are over."""
    parts: list[bytes] = []
    end = time.monotonic() + wait
    while (left := end - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            part = sock.recv(1 << 16)
        except TimeoutError:
            break
        except ConnectionError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)
