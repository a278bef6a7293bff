"""Work for the tests of the pool; in a module of its own, so that workers can import it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any


@dataclass(frozen=True)
class Item:
    work: Any
    size: int = 1


def make(factor: int) -> Callable[[Any], Any]:
    def apply(work: Any) -> Any:
        if work == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if work == "die while sending":
            Connection._send = _send_half_and_die  # type: ignore[method-assign]
            return b"x" * 1_000_000
        if work == "time out":
            raise TimeoutError("of its own")
        time.sleep(0.02 * (work % 3))
        return work * factor

    return apply


def _send_half_and_die(self: Connection, data: Any, write: Any = os.write) -> None:
    if len(data) < 1000:
        write(self.fileno(), data)
        return
    write(self.fileno(), data[:1000])
    os.kill(os.getpid(), signal.SIGKILL)
