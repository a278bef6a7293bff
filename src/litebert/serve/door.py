"""How a connection ends: the other side can still read the answer, and nobody keeps it open by not reading.

Closing a socket with unread bytes resets it, and an answer that is on its way may be lost with it; closing
one whose client does not read waits for ever.
Source: RFC 9112, section 9.6 (close in stages).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Door"]

LINGER_SECONDS: Final = 5.0
LINGER_BYTES: Final = 32_000_000
"""That are taken and thrown away, so that who sends them gets to read why."""


class Door:
    """A transport that is closed in stages."""

    def __init__(
        self, transport: asyncio.Transport, *, seconds: float, is_sending: Callable[[], bool]
    ) -> None:
        """Put it around a transport.

        Args:
            transport: of the connection.
            seconds: that a client may take for what was written before the end.
            is_sending: whether more of a request is to come.
        """
        self._transport, self._seconds, self._is_sending = transport, seconds, is_sending
        self._timer: asyncio.TimerHandle | None = None
        self._thrown = 0
        self.is_lingering = False
        """Nothing is answered any more, but what comes is still taken."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self.is_lingering or self._transport.is_closing()

    def close(self) -> None:
        """Close it; if a request is still being sent, in stages."""
        if self._is_sending():
            self.linger()
        else:
            self.end()

    def end(self) -> None:
        """Close it when all is written, or too slowly taken."""
        if not self._transport.is_closing():
            self._transport.close()
            if self._transport.get_write_buffer_size():
                self._give_up_after(self._seconds)

    def linger(self) -> None:
        """Say that nothing more comes, and take for a while what is still sent."""
        if self.is_closing():
            return
        self.is_lingering = True
        with contextlib.suppress(OSError):  # it has gone already
            self._transport.write_eof()
        self._transport.resume_reading()
        self._give_up_after(LINGER_SECONDS)

    def throw_away(self, data: bytes) -> None:
        """Take what comes after the end."""
        self._thrown += len(data)
        if self._thrown > LINGER_BYTES:
            self.give_up()

    def give_up(self) -> None:
        """Drop it with all that was not taken; an ordinary close would leave that to the system, for minutes."""
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):  # it has gone already
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def forget(self) -> None:
        """It is closed: no clock runs any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _give_up_after(self, seconds: float) -> None:
        self.forget()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.give_up)
