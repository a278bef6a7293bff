"""h11's parser behind rules of our own: what it forgives, and what would keep the server from all else.

h11 ends a chunked body at a bare line feed, where a proxy in front may not, and takes any number of chunks
of one byte, each as dear as a request. Source: RFC 9112, sections 2.2 and 7.1.
"""

from __future__ import annotations

from typing import Any, Final

import h11

from litebert.serve.header_rules import HeaderFault, check_header

__all__ = ["MOST_CHUNKS", "GuardedMessages"]

MOST_CHUNKS: Final = 4096
"""Of a body."""
_END: Final = b"\r\n\r\n"


class GuardedMessages(h11.Connection):
    """The server's end of a connection, in messages.

    Attributes:
        fault: why a message was refused, if it was one of our rules.
    """

    def __init__(self, header_bytes: int) -> None:
        """Begin.

        Args:
            header_bytes: of a header.
        """
        super().__init__(h11.SERVER, max_incomplete_event_size=max(header_bytes + 4, 1 << 14))
        self._header_bytes = header_bytes
        self._is_chunked, self._chunks = False, 0
        self._recent = b""
        """What came last: all that was not read yet, and four bytes before it."""
        self.fault: HeaderFault | None = None

    def receive_data(self, data: bytes) -> None:
        """Take bytes."""
        self._recent = self._recent[-(len(self.trailing_data[0]) + len(_END)) :] + data
        super().receive_data(data)

    def next_event(self) -> Any:
        """Return the next event of the stream.

        Raises:
            RemoteProtocolError: the client breaks the rules, ours or those of h11.
        """
        try:
            if self.their_state is h11.IDLE and self.our_state is h11.IDLE:
                check_header(self.trailing_data[0], self._header_bytes)
            event = super().next_event()
            self._check(event)
        except HeaderFault as fault:
            self.fault = fault
            raise h11.RemoteProtocolError(str(fault), fault.status) from fault
        return event

    def _check(self, event: Any) -> None:
        if isinstance(event, h11.Request):
            self._is_chunked = any(name == b"transfer-encoding" for name, _ in event.headers)
            self._chunks = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_end
            if self._chunks > MOST_CHUNKS:
                raise HeaderFault(400, f"the body has more than {MOST_CHUNKS} chunks")
        elif isinstance(event, h11.EndOfMessage) and self._is_chunked:
            read = self._recent[: len(self._recent) - len(self.trailing_data[0])]
            if list(event.headers):
                raise HeaderFault(400, "header lines behind a body are not read here")
            if not read.endswith(_END):
                raise HeaderFault(400, "lines end with CR LF")
