"""Who is next: sequences of many requests of many clients, each getting its share of the tokens.

Two levels of the same rule. Who has had the fewest tokens is next, first among clients, then among
the requests of a client. Who comes new starts at the tokens that each would have had if all had been
served at once: it owes nothing, nothing is owed to it, and a stream of newcomers starves nobody.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["FairQueue", "Waiting"]

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True, eq=False)
class Waiting(Generic[K]):
    """A request in the queue.

    Attributes:
        client: who sent it.
        key: only what has one key is computed together.
        sizes: tokens of each of its sequences.
        next: the first sequence that was not taken yet.
    """

    client: str
    key: K
    sizes: list[int]
    next: int = 0
    had: float = 0.0
    """Tokens it has had, counted from those of the others when it came."""

    @property
    def is_empty(self) -> bool:
        """Whether all its sequences were taken."""
        return self.next >= len(self.sizes)


@dataclass(slots=True, eq=False)
class _Client(Generic[K]):
    had: float
    clock: float = 0.0
    """Tokens that each of its requests would have had if all had been served at once."""
    requests: list[Waiting[K]] = field(default_factory=list["Waiting[K]"])

    def best(self, key: K | None) -> Waiting[K] | None:
        """The request that is next, of those of the key; of all when None."""
        mine = (r for r in self.requests if key is None or r.key == key)
        return min(mine, key=lambda request: request.had, default=None)


class FairQueue(Generic[K]):
    """Requests that wait, by client."""

    def __init__(self) -> None:
        self._clients: dict[str, _Client[K]] = {}
        self._clock = 0.0
        self.tokens = 0
        """Tokens that wait."""

    def __len__(self) -> int:
        return sum(len(client.requests) for client in self._clients.values())

    def __bool__(self) -> bool:
        return bool(self._clients)

    def add(self, request: Waiting[K]) -> None:
        """Put a request in; one without sequences is not kept."""
        if request.is_empty:
            return
        client = self._clients.setdefault(request.client, _Client(self._clock))
        request.had = client.clock
        client.requests.append(request)
        self.tokens += sum(request.sizes[request.next :])

    def remove(self, request: Waiting[K]) -> None:
        """Take a request out that nobody waits for any more; nothing happens if it is not in."""
        client = self._clients.get(request.client)
        if client is None or request not in client.requests:
            return
        client.requests.remove(request)
        self.tokens -= sum(request.sizes[request.next :])
        if not client.requests:
            del self._clients[request.client]

    def take(self, budget: int) -> list[tuple[Waiting[K], int]]:
        """Take the sequences to compute next, of one key: (request, number of the sequence).

        Args:
            budget: tokens; the first sequence is taken whatever its length.
        """
        taken: list[tuple[Waiting[K], int]] = []
        key: K | None = None
        left = budget
        while self._clients:
            choice = self._next(key)
            if choice is None:
                break
            client, request = choice
            size = request.sizes[request.next]
            if taken and size > left:
                break
            key = request.key
            taken.append((request, request.next))
            self._clock += size / len(self._clients)
            client.clock += size / len(client.requests)
            client.had += size
            request.had += size
            request.next += 1
            left -= size
            self.tokens -= size
            if request.is_empty:
                self.remove(request)
        return taken

    def _next(self, key: K | None) -> tuple[_Client[K], Waiting[K]] | None:
        for client in sorted(self._clients.values(), key=lambda client: client.had):
            request = client.best(key)
            if request is not None:
                return client, request
        return None
