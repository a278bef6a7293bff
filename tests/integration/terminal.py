"""A command on a pseudo-terminal, as a person has it."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path

LIMIT_SECONDS = 180


def run_in_terminal(arguments: list[str], cwd: Path, *, answer: str) -> tuple[int, str]:
    """Run litebert; give `answer` when it asks; return the exit code and all it showed."""
    child, master = pty.fork()
    if child == 0:
        os.chdir(cwd)
        env = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-m", "litebert", *arguments], env)  # noqa: S606
    screen, end, has_answered = b"", time.monotonic() + LIMIT_SECONDS, False
    while time.monotonic() < end:
        ready, _, _ = select.select([master], [], [], 1.0)
        if not ready:
            continue
        try:
            chunk = os.read(master, 4096)
        except OSError:  # the child has closed its side
            break
        if not chunk:
            break
        screen += chunk
        if not has_answered and b"[Y/n]" in screen:
            os.write(master, answer.encode())
            has_answered = True
    _, status = os.waitpid(child, 0)
    os.close(master)
    return os.waitstatus_to_exitcode(status), screen.decode("utf-8", errors="replace")
