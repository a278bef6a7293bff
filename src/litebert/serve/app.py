"""The routes: from HTTP to the service and back."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from litebert import __version__
from litebert.serve import record_requests, requests
from litebert.serve.errors import HttpFault, fault_response
from litebert.serve.guard import Guard
from litebert.serve.logs import AccessLog
from litebert.serve.metrics import CONTENT_TYPE
from litebert.serve.page_files import add_page, page_paths
from litebert.serve.pipeline import PipelineBody, pipeline_body
from litebert.serve.reading import BodyReader, parse, timeout_of
from litebert.serve.requests import Body
from litebert.serve.responses import PAGE_ROUTE, described, described_status
from litebert.serve.service import ClientGoneError, Service
from litebert.serve.settings import is_loopback
from litebert.serve.status import info, model_list

__all__ = ["make_app"]

BODIES: Final[dict[str, type[Body]]] = {
    "/predict": requests.PredictBody,
    "/embed": requests.EmbedBody,
    "/rerank": requests.RerankBody,
    "/similarity": requests.SimilarityBody,
    "/tokenize": requests.TokenizeBody,
    "/decode": requests.DecodeBody,
    "/v1/embeddings": requests.EmbeddingsBody,
    "/embeddings": requests.EmbeddingsBody,
    "/v1/qa": record_requests.QaBody,
    "/v1/ner": record_requests.NerBody,
    "/v1/fill-mask": record_requests.FillMaskBody,
    "/v1/choice": record_requests.ChoiceBody,
}

MODEL_ROUTE: Final = "/models/{name}"
STATUS: Final = ("/health", "/ping", "/ready", "/info", "/v1/models", "/metrics")

Handler = Callable[[Request], Awaitable[Response]]


def make_app(service: Service) -> Guard:
    """Return the app of a service, guarded."""
    app = FastAPI(
        title="litebert",
        version=__version__,
        summary="A text encoder as a service.",
        openapi_url=None,  # written once instead of for each request
        redirect_slashes=False,  # its address would be made of what the client calls this server
    )
    limits = service.settings
    reader = BodyReader(
        most=limits.max_body_bytes,
        most_together=limits.max_reading_bytes,
        seconds=limits.timeout_seconds,
    )
    names = list(service.models)
    for path, kind in BODIES.items():
        extra = described(path, kind, names)
        app.add_api_route(path, _route(service, reader, kind), methods=["POST"], **extra)
    for path, handler in (
        ("/", _pipeline(service, reader)),
        (MODEL_ROUTE, _named_pipeline(service, reader)),
    ):
        app.add_api_route(
            path, handler, methods=["POST"], **described(path, PipelineBody, list(service.models))
        )
    _add_status(app, service)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_bug)
    _add_document(app, has_docs=service.settings.docs)
    add_page(app.router)
    inner: ASGIApp = app
    if service.settings.cors_allow_origin:
        inner = CORSMiddleware(
            app,
            allow_origins=service.settings.cors_allow_origin,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-request-id", "x-request-timeout"],
            expose_headers=["x-request-id", "retry-after"],
        )
    settings = service.settings
    is_local = is_loopback(settings.host) and not service.keys.are_needed
    hosts = {"localhost", "127.0.0.1", "::1", settings.host.lower(), *settings.allowed_hosts}
    return Guard(
        inner,
        keys=service.keys,
        metrics=service.metrics,
        log=AccessLog(sys.stderr if settings.access_log else None, is_json=settings.json_logs),
        routes=[*BODIES, "/", "/openapi.json", *STATUS],
        prefixes={"/models/": MODEL_ROUTE},
        page=page_paths(),
        hosts=hosts if is_local else None,
    )


def _route(service: Service, reader: BodyReader, kind: type[Body]) -> Handler:
    async def handle(request: Request) -> Response:
        async def read() -> Body:
            return parse(kind, await reader.read(request))

        return await _answer(service, request, read)

    return handle


def _pipeline(service: Service, reader: BodyReader) -> Handler:
    async def handle(request: Request) -> Response:
        return await _answer_pipeline(service, reader, request, None)

    return handle


def _named_pipeline(
    service: Service, reader: BodyReader
) -> Callable[[Request, str], Awaitable[Response]]:
    async def handle(request: Request, name: str) -> Response:
        return await _answer_pipeline(service, reader, request, name)

    return handle


async def _answer_pipeline(
    service: Service, reader: BodyReader, request: Request, name: str | None
) -> Response:
    async def read() -> Body:
        sent = parse(PipelineBody, await reader.read(request))
        model = service.find(name or sent.model)
        return pipeline_body(sent, model.name, model.info)

    return await _answer(service, request, read)


async def _answer(
    service: Service, request: Request, read: Callable[[], Awaitable[Body]]
) -> Response:
    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    state = request.state
    service.metrics.in_flight.add(1)
    try:
        timeout = timeout_of(request)
        body = await read()
        reply, model = await service.answer(body, client=state.client, timeout=timeout, gone=gone)
    except HttpFault as fault:
        return fault_response(fault, request.scope["path"])
    except ClientGoneError:
        return Response(status_code=499)  # nobody reads it; the log and the metrics do
    finally:
        service.metrics.in_flight.add(-1)
    state.tokens, state.model = reply.tokens, model.name
    return Response(
        reply.body,
        media_type="application/json",
        headers={
            "x-compute-type": "cpu",
            "x-compute-tokens": str(reply.tokens),
            "x-queue-time": str(round(1000 * reply.queue)),
            "x-inference-time": str(round(1000 * reply.compute)),
        },
    )


def _add_status(app: FastAPI, service: Service) -> None:
    async def health() -> Response:
        """Whether the server lives; 503 only when an engine cannot be started any more."""
        is_well = all(model.failures < 5 or model.is_ready for model in service.models.values())
        return JSONResponse({"status": "ok" if is_well else "failing"}, 200 if is_well else 503)

    async def ready() -> Response:
        """Whether every model answers, and new requests are welcome."""
        if service.is_ready:
            return JSONResponse({"status": "ready"})
        status = "draining" if service.is_draining else "loading"
        return JSONResponse({"status": status}, 503, headers={"retry-after": "1"})

    async def about(request: Request) -> Response:
        """Model, task and limits; `?model=NAME` for another than the first."""
        try:
            return JSONResponse(info(service, service.find(request.query_params.get("model"))))
        except HttpFault as fault:
            return fault_response(fault, request.scope["path"])

    async def models() -> Response:
        """The models that are served."""
        return JSONResponse(model_list(service))

    async def metrics() -> Response:
        """Counters and times in the text format of Prometheus."""
        for model in service.models.values():
            service.metrics.ready.set(float(model.is_ready), model.name)
        return PlainTextResponse(service.metrics.text(), headers={"content-type": CONTENT_TYPE})

    for paths, handle in (
        (("/health", "/ping"), health),
        (("/ready",), ready),
        (("/info",), about),
        (("/v1/models",), models),
        (("/metrics",), metrics),
    ):
        for path in paths:
            extra = described_status(path, list(service.models))
            app.add_api_route(path, handle, methods=["GET"], **extra)


def _add_document(app: FastAPI, *, has_docs: bool) -> None:
    """Add the description of all routes that are there."""
    document = app.openapi()
    if page_paths():
        document["paths"]["/"]["get"] = PAGE_ROUTE
    body = to_json(document)

    async def openapi(_: Request) -> Response:
        return Response(body, media_type="application/json")

    async def docs(_: Request) -> Response:
        return get_swagger_ui_html(openapi_url="/openapi.json", title="litebert")

    app.add_route("/openapi.json", openapi, include_in_schema=False)
    if has_docs:
        app.add_route("/docs", docs, include_in_schema=False)


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for it
    words = {404: "there is no such route; GET /openapi.json lists them",
             405: "this route takes another method"}  # fmt: skip
    message = words.get(error.status_code, "the request cannot be answered")
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == 405:
        headers["allow"] = ", ".join(_methods(request))
    fault = HttpFault(error.status_code, message, headers=headers)
    return fault_response(fault, request.scope["path"])


def _methods(request: Request) -> list[str]:
    """Methods that any route of this path takes; a router knows those of the first one alone."""
    found: set[str] = set()
    for route in request.app.router.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


async def _on_bug(request: Request, error: Exception) -> Response:
    del error  # its text may quote the request
    return fault_response(HttpFault(500, "the server failed"), request.scope["path"])
