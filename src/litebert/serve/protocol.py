"""HTTP/1.1 with limits on time and size for every part of a request: uvicorn's protocol, hardened.

Plain uvicorn waits for ever for a header or a body, takes headers of 100 KB, and accepts a message with
both Content-Length and Transfer-Encoding.
"""

from __future__ import annotations

import asyncio
import json
import select
from dataclasses import dataclass
from http import HTTPStatus
from time import monotonic
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from litebert.serve.door import LINGER_BYTES, Door
from litebert.serve.message import GuardedMessages

__all__ = ["ConnectionLimits", "guarded_protocol"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection, and of all.

    Attributes:
        header_bytes: of a header.
        header_seconds: from its first byte, or the connection, to its end.
        body_rate: bytes of a body in a second, on average of each `header_seconds`.
        send_seconds: that a client may take nothing of an answer.
        connections: at once.
    """

    header_bytes: int = 16_384
    header_seconds: float = 10.0
    body_rate: int = 1024
    send_seconds: float = 30.0
    connections: int = 1000


def guarded_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return the protocol class for uvicorn's `http` setting."""

    class Bound(_GuardedProtocol):
        bounds = limits

    return Bound


class _GuardedProtocol(H11Protocol):
    bounds: ConnectionLimits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn: GuardedMessages = GuardedMessages(self.bounds.header_bytes)
        self._door: Door
        self.waiting_since = monotonic()
        self._header_timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._body_bytes, self._body_start, self._unwanted_bytes = 0, 0.0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if there is room."""
        self._door = Door(
            transport,
            seconds=self.bounds.send_seconds,
            is_sending=lambda: self.conn.their_state is h11.SEND_BODY,
        )
        super().connection_made(self._door)  # type: ignore[arg-type]
        if len(self.connections) > self.bounds.connections:
            self._make_room()
        self._start_header_timer()

    def _make_room(self) -> None:
        """End the connection that has asked for nothing for longest: who holds many must not lock out others."""
        idle: list[_GuardedProtocol] = [
            c for c in self.connections if isinstance(c, _GuardedProtocol) and c.is_idle
        ]
        min(idle, key=lambda c: c.waiting_since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything."""
        for timer in (self._header_timer, self._body_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        self._door.forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self._door.is_lingering:
            self._door.throw_away(data)
        if self.transport.is_closing():
            return
        self._body_bytes += len(data)
        super().data_received(data)
        self._look()
        if self._has_asked and self.cycle.response_complete:
            # Answered before it was all sent; who sends on for ever is not waited for.
            self._unwanted_bytes += len(data)
            if self._unwanted_bytes > LINGER_BYTES:
                self.transport.abort()

    def on_response_complete(self) -> None:
        """Go on with the next request of the connection."""
        self._unwanted_bytes, self.waiting_since = 0, monotonic()
        super().on_response_complete()
        if not self.transport.is_closing():
            self._look()

    def pause_writing(self) -> None:
        """The client does not read: for how long?"""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.bounds.send_seconds, self._door.give_up)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def shutdown(self) -> None:
        """Close when nothing is to be answered, also nothing that has come and was not read yet."""
        if self.is_idle and not self.transport.is_closing() and self._has_unread():
            self.loop.call_later(0.02, self.shutdown)
            return
        if not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Tell what is wrong, and close."""
        fault = self.conn.fault
        self._refuse(400 if fault is None else fault.status, msg if fault is None else str(fault))

    @property
    def is_idle(self) -> bool:
        """Whether nothing that was asked is to be answered."""
        return not self._has_asked or self.cycle.response_complete

    @property
    def _has_asked(self) -> bool:
        """Whether a request has come on this connection."""
        return bool(self.cycle)

    def _has_unread(self) -> bool:
        sock = self.transport.get_extra_info("socket")
        if sock is None or sock.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLIN)
        return bool(poll.poll(0)) or bool(self.conn.trailing_data[0])

    def _look(self) -> None:
        """Start and stop the clocks, by what the connection waits for."""
        state = self.conn.their_state
        if state is h11.IDLE:
            self._stop_body_timer()
            if self.conn.trailing_data[0]:
                self._start_header_timer()
            elif self._has_asked:
                self._stop_header_timer()
                if self.timeout_keep_alive_task is None:
                    # Stopped by what came of a body after its answer, and not started again.
                    self.timeout_keep_alive_task = self.loop.call_later(
                        self.timeout_keep_alive, self.timeout_keep_alive_handler
                    )
            return
        self._stop_header_timer()
        if state is h11.SEND_BODY:
            if self._body_timer is None:
                self._body_start, self._body_bytes = monotonic(), 0
                self._body_timer = self.loop.call_later(
                    self.bounds.header_seconds, self._weigh_body
                )
        else:
            self._stop_body_timer()

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.bounds.header_seconds, self._late_header)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _late_header(self) -> None:
        if self.conn.trailing_data[0]:
            self._refuse(408, "the header took too long")
        else:
            self._door.end()

    def _weigh_body(self) -> None:
        """Give up a body that comes too slowly now, however fast it began."""
        self._body_timer = None
        now = monotonic()
        if self._body_bytes < self.bounds.body_rate * (now - self._body_start):
            self._refuse(408, "the body took too long")
            return
        self._body_start, self._body_bytes = now, 0
        self._body_timer = self.loop.call_later(self.bounds.header_seconds, self._weigh_body)

    def _refuse(self, status: int, message: str) -> None:
        """Answer without the app, and close; within an answer, or behind that of a body, just close."""
        self._stop_header_timer()
        self._stop_body_timer()
        cycle = self.cycle
        if self._has_asked and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self._door.end()
                return
        elif self._has_asked and self.conn.our_state is h11.DONE:
            self._door.end()
            return
        body = json.dumps({"error": message, "error_type": "Validation"}).encode("ascii")
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        # Who is too slow has been waited for; who is wrong may still be sending.
        self._door.end() if status == 408 else self._door.linger()
