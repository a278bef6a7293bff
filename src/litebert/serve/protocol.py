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

from litebert.serve.header_rules import HeaderFault, check_header

__all__ = ["ConnectionLimits", "guarded_protocol"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection, and of all.

    Attributes:
        header_bytes: of a header.
        header_seconds: from its first byte, or the connection, to its end.
        body_rate: bytes of a body in a second, on average.
        send_seconds: that a client may take nothing of an answer.
        connections: at once.
    """

    header_bytes: int = 16_384
    header_seconds: float = 10.0
    body_rate: int = 1024
    send_seconds: float = 30.0
    connections: int = 1000


class _Connection(h11.Connection):
    """h11's parser behind our own look at the header."""

    def __init__(self, header_bytes: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=max(header_bytes + 4, 1 << 14))
        self._header_bytes = header_bytes
        self.fault: HeaderFault | None = None

    def next_event(self) -> Any:
        """Return the next event of the stream.

        Raises:
            RemoteProtocolError: the client breaks the rules, ours or those of h11.
        """
        if self.their_state is h11.IDLE and self.our_state is h11.IDLE:
            try:
                check_header(self.trailing_data[0], self._header_bytes)
            except HeaderFault as fault:
                self.fault = fault
                raise h11.RemoteProtocolError(str(fault), fault.status) from fault
        return super().next_event()


def guarded_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """Return the protocol class for uvicorn's `http` setting."""

    class Bound(_GuardedProtocol):
        bounds = limits

    return Bound


class _GuardedProtocol(H11Protocol):
    bounds: ConnectionLimits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn: _Connection = _Connection(self.bounds.header_bytes)
        self._header_timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._body_bytes, self._body_start = 0, 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, if there is room."""
        super().connection_made(transport)
        if len(self.connections) > self.bounds.connections:
            transport.abort()
            return
        self._start_header_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget everything."""
        for timer in (self._header_timer, self._body_timer, self._send_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        if self.transport.is_closing():
            return
        self._body_bytes += len(data)
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Go on with the next request of the connection."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._look()

    def pause_writing(self) -> None:
        """The client does not read: for how long?"""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.bounds.send_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def shutdown(self) -> None:
        """Close when nothing is to be answered, also nothing that has come and was not read yet."""
        is_idle = not self._has_asked or self.cycle.response_complete
        if is_idle and not self.transport.is_closing() and self._has_unread():
            self.loop.call_later(0.02, self.shutdown)
            return
        if not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Tell what is wrong, and close."""
        fault = self.conn.fault
        self._refuse(400 if fault is None else fault.status, msg if fault is None else str(fault))

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
                self._stop_header_timer()  # uvicorn's clock for idle connections runs
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
            self.transport.close()

    def _weigh_body(self) -> None:
        """Give up a body that comes too slowly."""
        self._body_timer = None
        if self._body_bytes < self.bounds.body_rate * (monotonic() - self._body_start):
            self._refuse(408, "the body took too long")
            return
        self._body_timer = self.loop.call_later(1.0, self._weigh_body)

    def _refuse(self, status: int, message: str) -> None:
        """Answer without the app, and close; within an answer just close."""
        self._stop_header_timer()
        self._stop_body_timer()
        cycle = self.cycle
        if self._has_asked and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        body = json.dumps({"error": message, "error_type": "Validation"}).encode("ascii")
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
