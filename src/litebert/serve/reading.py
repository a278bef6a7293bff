"""From the bytes of a request to a checked body: bounded, and whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from litebert.serve.errors import HttpFault
from litebert.serve.service import ClientGoneError

__all__ = ["MOST_VALUES", "TIMEOUT_HEADER", "BodyReader", "parse", "timeout_of", "told"]

B = TypeVar("B", bound=BaseModel)

TIMEOUT_HEADER: Final = "x-request-timeout"
"""Seconds that a client gives its request."""
_MOST_FAULTS: Final = 3
MOST_VALUES: Final = 60_000
"""Of a body: what is parsed in a few hundredths of a second at most, whatever it is."""
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


SILENT_SECONDS: Final = 1.0
"""After which a body that does not go on gives its place to others."""


@dataclass(slots=True, eq=False)
class _Reading:
    """A body that is being read."""

    clock: asyncio.Timeout
    last: float
    held: int = 0


class BodyReader:
    """Reads bodies, and keeps what all of them hold at one moment within a bound."""

    def __init__(self, *, most: int, most_together: int, seconds: float) -> None:
        """Set the bounds.

        Args:
            most: bytes of a body.
            most_together: bytes of all that are being read.
            seconds: for a body.
        """
        self._most, self._most_together, self._seconds = most, most_together, seconds
        self._readings: set[_Reading] = set()

    async def read(self, request: Request) -> bytes:
        """Return the body.

        Raises:
            HttpFault: no JSON, more bytes than allowed, or too late.
            ClientGoneError: the connection ended first.
        """
        _require_json(request)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._most:
            raise _too_large(self._most)
        parts: list[bytes] = []
        clock = asyncio.timeout(self._seconds)
        reading = _Reading(clock, monotonic())
        self._readings.add(reading)
        try:
            async with clock:
                async for part in request.stream():
                    reading.held += len(part)
                    reading.last = monotonic()
                    if reading.held > self._most:
                        raise _too_large(self._most)
                    self._require_room(reading)
                    parts.append(part)
        except ClientDisconnect as error:
            raise ClientGoneError from error
        except TimeoutError as error:
            raise HttpFault(
                408, "the body took too long", headers={"connection": "close"}
            ) from error
        finally:
            self._readings.discard(reading)
        return b"".join(parts)

    def _require_room(self, reading: _Reading) -> None:
        """Take room from bodies that do not go on, if there is too little.

        Raises:
            HttpFault: there are none.
        """
        while sum(other.held for other in self._readings) > self._most_together:
            oldest = min(self._readings, key=lambda other: other.last)
            if reading.last - oldest.last < SILENT_SECONDS:
                raise HttpFault(
                    429,
                    "the server reads more requests than it can hold; try again later",
                    headers={"retry-after": "1", "connection": "close"},
                )
            self._readings.discard(oldest)
            with contextlib.suppress(RuntimeError):  # it is just ending
                oldest.clock.reschedule(reading.last)


def _require_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # A page of another site may send text/plain without asking; JSON it may not.
    if kind != "application/json" and not kind.endswith("+json"):
        raise HttpFault(415, "send JSON: Content-Type: application/json")


def parse(kind: type[B], raw: bytes) -> B:
    """Return the checked body.

    The parser bounds how deeply values may be nested, and knows neither NaN nor infinity.

    Raises:
        HttpFault: no JSON (400), or not what the route takes (422).
    """
    _require_few_values(raw)
    try:
        values = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        message = f"the body is no JSON that is read here: {error}"
        raise HttpFault(400, message, kind="Validation") from error
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise HttpFault(422, told(error, kind)) from error


def _require_few_values(raw: bytes) -> None:
    """Refuse a body of very many values, which would keep the server from everything else.

    Raises:
        HttpFault: there are more than `MOST_VALUES`.
    """
    if _marks(raw) <= MOST_VALUES:
        return
    found = last = 0
    for match in _STRING.finditer(raw):  # marks in texts do not count
        found += 1 + _marks(raw[last : match.start()])
        last = match.end()
        if found > MOST_VALUES:
            break
    if found + _marks(raw[last:]) > MOST_VALUES:
        raise HttpFault(400, f"the body has more than {MOST_VALUES} values", kind="Validation")


def _marks(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def timeout_of(request: Request) -> float | None:
    """Return the seconds that the client gives its request, if it says so.

    Raises:
        HttpFault: no number above 0.
    """
    text = request.headers.get(TIMEOUT_HEADER)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise HttpFault(
            400, f"{TIMEOUT_HEADER} must be a number of seconds above 0", kind="Validation"
        )
    return seconds


def told(error: ValidationError, kind: type[BaseModel]) -> str:
    """Return the first faults in words, without what was sent."""
    found: list[str] = []
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(
            str(part) for part in fault["loc"] if isinstance(part, int) or part.isidentifier()
        )
        if fault["type"] == "extra_forbidden":
            known = ", ".join(f.alias or name for name, f in kind.model_fields.items())
            found.append(f"{place[:60]}: not known here; known: {known}")
        else:
            found.append(f"{place[:60] or 'body'}: {fault['msg'].removeprefix('Value error, ')}")
    return "; ".join(list(dict.fromkeys(found))[:_MOST_FAULTS])


def _too_large(most: int) -> HttpFault:
    return HttpFault(413, f"the body has more than {most} bytes", headers={"connection": "close"})
