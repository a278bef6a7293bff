"""What a client is told when something is wrong: a status, a sentence, and nothing about the inside."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import JSONResponse, Response

__all__ = ["OPENAI_PATHS", "HttpFault", "fault_response"]

KINDS: Final = {
    400: "Empty",
    401: "Unauthorized",
    403: "Unauthorized",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    411: "Validation",
    413: "PayloadTooLarge",
    415: "UnsupportedMediaType",
    422: "Validation",
    424: "Backend",
    429: "Overloaded",
    431: "HeaderTooLarge",
    500: "Backend",
    503: "Unhealthy",
    504: "Timeout",
}

OPENAI_PATHS: Final = frozenset({"/v1/embeddings", "/embeddings", "/v1/models"})
"""Routes whose faults have the shape of OpenAI."""


class HttpFault(Exception):  # noqa: N818 - it is an answer as much as a fault
    """A request that ends here.

    Attributes:
        status: of HTTP.
        message: for the client.
        kind: `error_type`; None: the usual one of the status.
        headers: further ones.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.kind = kind or KINDS.get(status, "Backend")
        self.headers = headers or {}


def fault_response(fault: HttpFault, path: str) -> Response:
    """Return a fault in the shape of the route's family: that of OpenAI below /v1/embeddings, else TEI's."""
    body: dict[str, Any]
    if path in OPENAI_PATHS:
        body = {"message": fault.message, "code": fault.status, "type": fault.kind}
    else:
        body = {"error": fault.message, "error_type": fault.kind}
    return JSONResponse(body, fault.status, headers=fault.headers)
