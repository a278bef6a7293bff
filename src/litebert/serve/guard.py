"""Around every request: its id, who sent it, what headers the answer carries, what is counted and logged."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from litebert.serve.errors import HttpFault, fault_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from litebert.serve.keys import ApiKeys
    from litebert.serve.logs import AccessLog
    from litebert.serve.metrics import Metrics

__all__ = ["Guard"]

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
OPEN_PATHS: Final = frozenset({"/health", "/ping", "/ready"})
"""Probes have no key."""
CSP: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-embedder-policy", b"require-corp"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class Guard:
    """The outermost part of the app."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: ApiKeys,
        metrics: Metrics,
        log: AccessLog,
        routes: Iterable[str],
        prefixes: Mapping[str, str],
        page: Iterable[str] = (),
        hosts: Iterable[str] | None = None,
    ) -> None:
        """Put it around an app.

        Args:
            app: what answers.
            keys: who may ask.
            metrics: what is counted.
            log: where a line about each request goes.
            routes: paths that may be named in metrics and logs.
            prefixes: how the paths that begin so are named there.
            page: paths of the page, which needs no key: it holds nothing, and asks for one.
            hosts: names in `Host` that are answered; None: all. A page of another site that has its
                name point to this machine is not this machine.
        """
        self._app, self._keys, self._metrics, self._log = app, keys, metrics, log
        self._routes, self._page, self._prefixes = frozenset(routes), frozenset(page), prefixes
        self._hosts = None if hosts is None else frozenset(hosts)
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, path = monotonic(), scope["path"]
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8).encode()
        route = path if path in self._routes else self._named(path)
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                found = {name for name, _ in message["headers"]}
                extra = [header for header in HEADERS if header[0] not in found]
                extra.append((b"x-request-id", request_id))
                if self.is_draining:
                    extra.append((b"connection", b"close"))
                if b"cache-control" not in found:
                    extra.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        state: dict[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id.decode("ascii")
        client = scope.get("client")
        state["client"] = client[0] if client else "local"
        try:
            try:
                self._check(scope["method"], path, headers, state)
            except HttpFault as fault:
                await fault_response(fault, path)(scope, receive, answer)
                return
            await self._app(scope, receive, answer)
        finally:
            seconds = monotonic() - start
            shown = str(status or 499)  # 499: the client went away first
            self._metrics.requests.add(1, route, shown)
            self._metrics.request_seconds.observe(seconds, route)
            with contextlib.suppress(OSError):
                self._log.write(
                    request_id=state["request_id"],
                    client=state["client"],
                    method=scope["method"] if scope["method"].isalpha() else "?",
                    route=route,
                    status=status or 499,
                    seconds=seconds,
                    tokens=state.get("tokens"),
                    model=state.get("model"),
                )

    def _named(self, path: str) -> str:
        for prefix, name in self._prefixes.items():
            if path.startswith(prefix):
                return name
        return "other"

    def _check(
        self, method: str, path: str, headers: dict[bytes, bytes], state: dict[str, Any]
    ) -> None:
        """Refuse who may not ask."""
        if self._hosts is not None and _host(headers.get(b"host", b"")) not in self._hosts:
            raise HttpFault(
                403,
                "this server answers to the names of this machine only; start it with "
                "--set allowed_hosts=NAME to answer to another",
            )
        is_open = path in OPEN_PATHS or (method in ("GET", "HEAD") and path in self._page)
        if self._keys.are_needed and not is_open and method != "OPTIONS":
            name = self._keys.client_of(headers.get(b"authorization"))
            if name is None:
                raise HttpFault(
                    401,
                    "this server needs an API key: Authorization: Bearer KEY",
                    headers={"www-authenticate": "Bearer"},
                )
            state["client"] = name


def _host(value: bytes) -> str:
    """The name in a Host header, without its port."""
    text = value.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]
