"""SIGTERM and SIGHUP unwind a command as Ctrl-C does, so that half-written files do not stay."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator
from types import FrameType
from typing import Any, Final, Never

import typer

from litebert.cli.output import say

__all__ = ["clean_end"]

_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class _Ended(BaseException):
    """A signal asks for the end; no `except Exception` stops it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def clean_end() -> Generator[None]:
    """Let the first SIGTERM or SIGHUP unwind the block; a second one ends the process at once.

    A signal that is ignored stays so (`nohup`), and outside of the main thread nothing is changed.

    Raises:
        Exit: 128 + signal, after the block has cleaned up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}

    def end(number: int, frame: FrameType | None) -> Never:  # noqa: ARG001
        for known in before:
            signal.signal(known, signal.SIG_DFL)
        raise _Ended(number)

    try:
        for number in _SIGNALS:
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, end)
        yield
    except _Ended as ended:
        say(f"ended by {signal.Signals(ended.number).name}; nothing half-written is left")
        raise typer.Exit(128 + ended.number) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
