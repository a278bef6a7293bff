"""Who is let in: a bound on requests, on those of one client, and on how long a request would wait."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from litebert.errors import LitebertError

__all__ = ["Admission", "OverloadedError", "Ticket"]

CLIENT_SHARE: Final = 0.75
"""Of all places, what one client may hold, so that another one finds some."""
CHARACTERS: Final = 4.0
"""Of a token, before the text is tokenized; English has 4 to 5."""


class OverloadedError(LitebertError):
    """There is no room now.

    Attributes:
        reason: "requests", "client" or "wait".
        retry_after: seconds, whole.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__("the server has more requests than it can answer now; try again later")
        self.reason = reason
        self.retry_after = max(1, min(60, math.ceil(seconds)))


@dataclass(slots=True, eq=False)
class Ticket:
    """A request that was let in."""

    client: str
    model: str
    tokens: float


class Admission:
    """Counts what is inside.

    With fair shares a request does not wait for all that is there: of each other client at most as
    much goes before it as it needs itself, together with what its own client has before it.
    """

    def __init__(self, *, most: int, most_seconds: float) -> None:
        """Set the bounds.

        Args:
            most: requests.
            most_seconds: that a request may be expected to wait; as long as it will be computed itself it
                always may, so that large ones find a place too.
        """
        self._most, self._most_seconds = most, most_seconds
        self._tickets: set[Ticket] = set()
        self._clients: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._tickets)

    def enter(self, client: str, model: str, tokens: float, rate: float) -> Ticket:
        """Let a request in.

        Args:
            client: who sent it.
            model: which it asks.
            tokens: that it will about have.
            rate: tokens that the model computes in a second; 0: not known.

        Raises:
            OverloadedError: there is no room.
        """
        wait = self.expected_wait(client, model, tokens, rate)
        if len(self._tickets) >= self._most:
            raise OverloadedError("requests", wait)
        if self._clients.get(client, 0) >= max(1, math.ceil(self._most * CLIENT_SHARE)):
            raise OverloadedError("client", wait)
        own = tokens / rate if rate > 0 else 0.0
        if wait > max(self._most_seconds, own):
            raise OverloadedError("wait", wait)
        ticket = Ticket(client, model, tokens)
        self._tickets.add(ticket)
        self._clients[client] = self._clients.get(client, 0) + 1
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Let it out; once is enough, twice does no harm."""
        if ticket not in self._tickets:
            return
        self._tickets.remove(ticket)
        self._clients[ticket.client] -= 1
        if not self._clients[ticket.client]:
            del self._clients[ticket.client]

    def expected_wait(self, client: str, model: str, tokens: float, rate: float) -> float:
        """Return the seconds until such a request would be computed."""
        if rate <= 0:
            return 0.0
        inside: dict[str, float] = {}
        mine = 0.0
        for ticket in self._tickets:
            if ticket.model != model:
                continue
            if ticket.client == client:
                # The same rule holds among the requests of one client.
                mine += min(ticket.tokens, tokens)
            else:
                inside[ticket.client] = inside.get(ticket.client, 0.0) + ticket.tokens
        share = mine + tokens
        return (mine + sum(min(other, share) for other in inside.values())) / rate
