"""A line about each request: who, which route, how long; never a text, a header or a query."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

__all__ = ["AccessLog", "JsonFormatter", "set_up_logging"]

import logging


class AccessLog:
    """Writes lines to a stream, plain or as JSON."""

    def __init__(self, stream: TextIO | None, *, is_json: bool) -> None:
        self._stream, self._is_json = stream, is_json

    def write(
        self,
        *,
        request_id: str,
        client: str,
        method: str,
        route: str,
        status: int,
        seconds: float,
        tokens: int | None = None,
        model: str | None = None,
    ) -> None:
        """Write one line; every value is ours or was checked, so that none can fake a line."""
        if self._stream is None:
            return
        values: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": request_id,
            "client": client,
            "method": method,
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 1),
        }
        values |= {} if model is None else {"model": model}
        values |= {} if tokens is None else {"tokens": tokens}
        if self._is_json:
            text = json.dumps(values)
        else:
            text = " ".join(
                f"{name}={value}" if name != "time" else str(value)
                for name, value in values.items()
            )
        self._stream.write(text + "\n")
        self._stream.flush()


class JsonFormatter(logging.Formatter):
    """Records as JSON objects, one a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return json.dumps(
            {
                "time": datetime.fromtimestamp(record.created, UTC).isoformat(
                    timespec="milliseconds"
                ),
                "level": record.levelname.lower(),
                "message": record.getMessage(),
            }
        )


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return f"{time} {record.levelname.lower()} {text}"


def set_up_logging(*, is_json: bool) -> None:
    """Send what the server has to say to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if is_json else _PlainFormatter())
    logger = logging.getLogger("litebert.serve")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    # What uvicorn says about single requests quotes what clients sent.
    for name, level in (("uvicorn.error", logging.CRITICAL), ("uvicorn.access", logging.CRITICAL)):
        logging.getLogger(name).setLevel(level)
