"""Clients that behave, and count what a server owes them: requests that were lost, wrong or hung.

Lost: the connection ended before the whole answer. Wrong: another answer than the request gets from an
idle server, or a status that nothing justifies. Hung: no whole answer in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Answer", "Crowd", "Question", "Tally", "ask", "beside", "difference", "learn"]

HUNG_SECONDS = 20.0
SAME = 1e-5
"""Numbers of two answers may differ so: float32 sums in another order."""
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Question:
    """A request and the answers that are right: one, or more while models are exchanged."""

    path: str
    body: Any
    right: tuple[Any, ...] = ()

    def raw(self, *lines: str) -> bytes:
        """Return it as bytes."""
        data = json.dumps(self.body).encode()
        head = [
            f"POST {self.path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
            f"Content-Length: {len(data)}", *lines, "", "",
        ]  # fmt: skip
        return "\r\n".join(head).encode() + data


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Tally:
    """What clients got."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    lost: int = 0
    wrong: int = 0
    hung: int = 0
    refused: int = 0
    cancelled: int = 0
    most_difference: float = 0.0
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Remember why, for the first few."""
        if len(self.notes) < 8:
            self.notes.append(text)

    def summary(self) -> dict[str, Any]:
        """Return the counts, and times of what was answered with 200."""
        good = sorted(self.seconds)
        found: dict[str, Any] = {
            "answers": dict(sorted(self.statuses.items())),
            "lost": self.lost, "wrong": self.wrong, "hung": self.hung,
        }  # fmt: skip
        if good:
            found["p50_ms"] = round(1000 * good[len(good) // 2], 1)
            found["p99_ms"] = round(1000 * good[int(0.99 * (len(good) - 1))], 1)
            found["worst_ms"] = round(1000 * good[-1], 1)
        for name in ("cancelled", "refused", "notes"):
            if getattr(self, name):
                found[name] = getattr(self, name)
        return found


async def ask(port: int, data: bytes, streams: Streams | None = None) -> tuple[Answer, Any]:
    """Send a request; return its answer, and the connection where it can be used again.

    Raises:
        ConnectionRefusedError: the door is closed.
        OSError: the connection ended; so does IncompleteReadError.
    """
    reader, writer = streams or await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    except BaseException:
        writer.close()
        raise
    answer = Answer(int(first.split()[1]), headers, body)
    if headers.get("connection", "").lower() == "close":
        writer.close()
        return answer, None
    return answer, (reader, writer)


def difference(one: Any, other: Any) -> float:
    """Return the largest difference of two numbers in the same place; infinite where more differs."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return 0.0 if one is other else math.inf
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other)
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return math.inf
        return max((difference(a, b) for a, b in zip(one, other, strict=True)), default=0.0)
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return math.inf
        return max((difference(value, other[key]) for key, value in one.items()), default=0.0)
    return 0.0 if one == other else math.inf


async def learn(port: int, questions: Sequence[Question]) -> list[Question]:
    """Ask each question alone; return them with the answers that are right from now on."""
    found: list[Question] = []
    for question in questions:
        answer, _ = await ask(port, question.raw("Connection: close"))
        if answer.status != 200:
            raise SystemExit(f"{question.path} {question.body!r}: {answer.body[:300]!r}")
        found.append(Question(question.path, question.body, (json.loads(answer.body),)))
    return found


class Crowd:
    """Clients that ask, each again and again, until they are told to stop."""

    def __init__(
        self,
        port: int,
        questions: Sequence[Question],
        *,
        clients: int = 4,
        pause: float = 0.01,
        allowed: Sequence[int] = (200,),
        keeps: float = 0.5,
        cancels: float = 0.0,
        on_answer: Callable[[Answer, float], None] | None = None,
    ) -> None:
        """Start them.

        Args:
            port: of the server.
            questions: with the answers that are right.
            clients: how many.
            pause: seconds between the answer and the next question, on average.
            allowed: statuses that are no fault here; 429 and 503 must say when to come back.
            keeps: share of the clients that keep their connection.
            cancels: share of the requests whose client goes away before the answer.
            on_answer: is told of every answer, and of the seconds it took.
        """
        self.tally = Tally()
        self._port, self._questions, self._pause = port, questions, pause
        self._allowed, self._cancels, self._on_answer = frozenset(allowed), cancels, on_answer
        self._is_over = False
        self.is_closed = False
        """Told by who ends the server: a refused connection is no fault from now on."""
        self._tasks = [
            asyncio.create_task(self._run(number, number < keeps * clients))
            for number in range(clients)
        ]

    async def stop(self) -> Tally:
        """Let each finish its request; return the counts."""
        self._is_over = True
        await asyncio.gather(*self._tasks)
        return self.tally

    async def _run(self, number: int, is_keeping: bool) -> None:
        rng, streams = random.Random(number), None
        while not self._is_over:
            question = rng.choice(self._questions)
            lines = () if is_keeping else ("Connection: close",)
            if rng.random() < self._cancels:
                await self._cancel(question, rng)
                continue
            start = time.perf_counter()
            try:
                async with asyncio.timeout(HUNG_SECONDS):
                    answer, streams = await ask(self._port, question.raw(*lines), streams)
            except TimeoutError:
                self.tally.hung += 1
                self.tally.note(f"hung: {question.path}")
                streams = None
                continue
            except ConnectionRefusedError:
                self.tally.refused += 1
                if not self.is_closed:
                    self.tally.lost += 1
                    self.tally.note("refused")
                    await asyncio.sleep(0.1)
                    continue
                return
            except (OSError, asyncio.IncompleteReadError) as error:
                self.tally.lost += 1
                self.tally.note(
                    f"lost: {question.path} {'kept' if streams else 'new'}: {error!r:.200}"
                )
                streams = None
                continue
            self._weigh(question, answer, time.perf_counter() - start)
            await asyncio.sleep(self._pause * 2 * rng.random() + 0.05 * (answer.status != 200))
        if streams:
            streams[1].close()

    def _weigh(self, question: Question, answer: Answer, seconds: float) -> None:
        tally = self.tally
        tally.statuses[str(answer.status)] += 1
        if self._on_answer:
            self._on_answer(answer, seconds)
        if answer.status == 200:
            tally.seconds.append(seconds)
            found = json.loads(answer.body)
            far = min(difference(found, right) for right in question.right)
            tally.most_difference = max(tally.most_difference, far)
            if far > SAME:
                tally.wrong += 1
                tally.note(f"wrong by {far:g}: {question.path} {question.body!r:.80}")
        elif answer.status not in self._allowed or (
            answer.status in (429, 503) and not answer.headers.get("retry-after", "").isdecimal()
        ):
            tally.wrong += 1
            tally.note(f"status {answer.status}: {answer.body[:120]!r}")

    async def _cancel(self, question: Question, rng: random.Random) -> None:
        """Send a request and go away: before its end, at once, or a little later; politely or not."""
        self.tally.cancelled += 1
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return
        data = question.raw()
        writer.write(data[: rng.choice((len(data) // 2, len(data), len(data)))])
        await asyncio.sleep(rng.choice((0.0, 0.002, 0.02)))
        if rng.random() < 0.5:
            writer.transport.abort()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        await asyncio.sleep(self._pause)


@contextlib.asynccontextmanager
async def beside(port: int, questions: Sequence[Question], **options: Any) -> AsyncGenerator[Tally]:
    """Have clients ask all the while; their counts are whole when the block is left."""
    crowd = Crowd(port, questions, **options)
    try:
        yield crowd.tally
    finally:
        await crowd.stop()
