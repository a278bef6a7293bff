"""Asking a training run to stop, by a signal or by the program."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class StopRequest:
    """A flag that the loop looks at between steps and batches.

    Attributes:
        signal: number of the signal that asked, 0 for a request of the program, None for none.
    """

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def is_requested(self) -> bool:
        """Whether the run shall end soon, with its state saved."""
        return self.signal is not None

    def request(self, signal_number: int = 0) -> None:
        """Ask for the end; the first request counts."""
        if self.signal is None:
            self.signal = signal_number


@contextmanager
def stop_on_signals(*, has_launcher: bool = False) -> Generator[StopRequest]:
    """Turn the first SIGINT, SIGTERM or SIGHUP in the block into a stop request.

    The second one ends the process at once, as if nothing had caught it. Outside of the main
    thread no signal is caught; the request can still be made by the program.

    Args:
        has_launcher: further signals change nothing: a scheduler signals launcher and process, and
            the launcher passes its own on, while the state is being saved. It ends by SIGKILL what
            does not end.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        if stop.is_requested and not has_launcher:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.request(number)

    try:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP on purpose
                before[number] = signal.signal(number, handle)
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
