"""From the bytes of a request to a checked body: bounded, and whole or not at all."""

from __future__ import annotations

import math
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from litebert.serve.errors import HttpFault
from litebert.serve.service import ClientGoneError

__all__ = ["TIMEOUT_HEADER", "parse", "read_body", "timeout_of"]

B = TypeVar("B", bound=BaseModel)

TIMEOUT_HEADER: Final = "x-request-timeout"
"""Seconds that a client gives its request."""
_MOST_FAULTS: Final = 3


async def read_body(request: Request, most: int) -> bytes:
    """Return the body.

    Raises:
        HttpFault: no JSON, or more bytes than allowed.
        ClientGoneError: the connection ended first.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    # A page of another site may send text/plain without asking; JSON it may not.
    if kind != "application/json" and not kind.endswith("+json"):
        raise HttpFault(415, "send JSON: Content-Type: application/json")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    total = 0
    try:
        async for part in request.stream():
            total += len(part)
            if total > most:
                raise _too_large(most)
            parts.append(part)
    except ClientDisconnect as error:
        raise ClientGoneError from error
    return b"".join(parts)


def parse(kind: type[B], raw: bytes) -> B:
    """Return the checked body.

    The parser bounds how deeply values may be nested, and knows neither NaN nor infinity.

    Raises:
        HttpFault: no JSON (400), or not what the route takes (422).
    """
    try:
        values = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        message = f"the body is no JSON that is read here: {error}"
        raise HttpFault(400, message, kind="Validation") from error
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        raise HttpFault(422, "; ".join(_told(faults, kind)[:_MOST_FAULTS])) from error


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


def _told(faults: list[Any], kind: type[BaseModel]) -> list[str]:
    """Faults in words, without what was sent."""
    found: list[str] = []
    for fault in faults:
        place = ".".join(
            str(part) for part in fault["loc"] if isinstance(part, int) or part.isidentifier()
        )
        if fault["type"] == "extra_forbidden":
            known = ", ".join(f.alias or name for name, f in kind.model_fields.items())
            found.append(f"{place[:60]}: not known here; known: {known}")
        else:
            found.append(f"{place[:60] or 'body'}: {fault['msg'].removeprefix('Value error, ')}")
    return list(dict.fromkeys(found))


def _too_large(most: int) -> HttpFault:
    return HttpFault(413, f"the body has more than {most} bytes", headers={"connection": "close"})
