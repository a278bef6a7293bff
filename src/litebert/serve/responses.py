"""How the routes are described in the OpenAPI document: bodies, answers and faults."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel
from starlette.responses import PlainTextResponse

from litebert.serve.errors import OPENAI_PATHS

__all__ = ["PAGE_ROUTE", "described", "described_status"]

_FAULT: Final = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "error_type": {"type": "string"}},
    "required": ["error", "error_type"],
}
_OPENAI_FAULT: Final = {
    "type": "object",
    "properties": {
        "message": {"type": "string"},
        "code": {"type": "integer"},
        "type": {"type": "string"},
    },
    "required": ["message", "code", "type"],
}
_FAULTS: Final = {
    400: "No JSON, or no input",
    401: "No valid API key",
    403: "A name of the server that is not known",
    404: "No such model",
    408: "The request came too slowly",
    413: "Too many bytes",
    415: "Not JSON",
    422: "Not what the route takes, or not what the model does",
    429: "Too many requests; Retry-After says when to come back",
    500: "The model could not answer",
    503: "No engine at the moment; Retry-After says when to come back",
    504: "Not ready in time",
}
_NUMBER: Final[dict[str, Any]] = {"type": "number"}
_VECTORS: Final[dict[str, Any]] = {"type": "array", "items": {"type": "array", "items": _NUMBER}}
_LABELS: Final[dict[str, Any]] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"label": {"type": "string"}, "score": _NUMBER},
        "required": ["label", "score"],
    },
}
_ANY: Final[dict[str, Any]] = {"anyOf": [{"type": "array"}, {"type": "object"}]}
_ANSWERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "/": ("What InferenceClient of huggingface_hub sends", _ANY),
    "/models/{name}": ("The same for a model that its address names", _ANY),
    "/predict": (
        "Labels with probabilities, best first",
        {"anyOf": [_LABELS, {"type": "array", "items": _LABELS}]},
    ),
    "/embed": ("A vector for each text", _VECTORS),
    "/rerank": (
        "Texts by how well they answer the query, best first",
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "index": {"type": "integer"},
                    "score": _NUMBER,
                    "text": {"type": "string"},
                },
                "required": ["index", "score"],
            },
        },
    ),
    "/similarity": ("Cosines with the source sentence", {"type": "array", "items": _NUMBER}),
    "/tokenize": (
        "Pieces and their places",
        {"type": "array", "items": {"type": "array", "items": {"type": "object"}}},
    ),
    "/decode": ("Texts of ids", {"type": "array", "items": {"type": "string"}}),
    "/v1/embeddings": ("Vectors, as OpenAI gives them", {"type": "object"}),
    "/embeddings": ("Vectors, as OpenAI gives them", {"type": "object"}),
    "/v1/qa": ("Answers from passages", _ANY),
    "/v1/ner": ("Entities, or intent and slots", _ANY),
    "/v1/fill-mask": ("Words for each mask", _ANY),
    "/v1/choice": ("The choice that answers a question", _ANY),
}


_STATE: Final = {
    "type": "object",
    "properties": {"status": {"type": "string"}},
    "required": ["status"],
}
_STATUS: Final[dict[str, dict[int, tuple[str, Any]]]] = {
    "/health": {200: ("It lives", _STATE), 503: ("An engine cannot be started any more", _STATE)},
    "/ping": {200: ("It lives", _STATE), 503: ("An engine cannot be started any more", _STATE)},
    "/ready": {200: ("Requests are welcome", _STATE), 503: ("Loading or ending", _STATE)},
    "/info": {200: ("Model, task and limits", {"type": "object"}), 404: ("No such model", _FAULT)},
    "/v1/models": {200: ("The models that are served", {"type": "object"})},
}
"""Answers of the routes that say something about the server; probes are open to all."""


PAGE_ROUTE: Final = {
    "summary": "The page",
    "operationId": "get_page",
    "tags": ["status"],
    "responses": {
        "200": {"description": "HTML", "content": {"text/html": {"schema": {"type": "string"}}}}
    },
}


def described_status(path: str, names: Sequence[str]) -> dict[str, Any]:
    """Return what `add_api_route` takes to describe a route that says something about the server.

    Args:
        path: of the route.
        names: of the models.
    """
    if path == "/metrics":
        good = {"text/plain": {"schema": {"type": "string"}}}
        answers: dict[int | str, Any] = {200: {"description": "For Prometheus", "content": good}}
    else:
        answers = {
            status: {"description": text, "content": {"application/json": {"schema": schema}}}
            for status, (text, schema) in _STATUS[path].items()
        }
    fault = _fault(path)
    for status in (401, 403) if path not in ("/health", "/ping", "/ready") else (403,):
        content = {"application/json": {"schema": fault}}
        answers[status] = {"description": _FAULTS[status], "content": content}
    found: dict[str, Any] = {"response_model": None, "tags": ["status"], "responses": answers}
    if path == "/metrics":
        found["response_class"] = PlainTextResponse
    if path == "/info":
        name = {"name": "model", "in": "query", "required": False, "schema": _name(names)}
        found["openapi_extra"] = {"parameters": [name]}
    return found


def described(path: str, kind: type[BaseModel], names: Sequence[str]) -> dict[str, Any]:
    """Return what `add_api_route` takes to describe a route.

    Args:
        path: of the route.
        kind: of its body.
        names: of the models.
    """
    summary, answer = _ANSWERS[path]
    fault = _fault(path)
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    schema = _inlined(schema, schema.pop("$defs", {}))
    schema["properties"]["model"] = {"anyOf": [_name(names), {"type": "null"}], "default": None}
    faults = {
        status: {"description": text, "content": {"application/json": {"schema": fault}}}
        for status, text in _FAULTS.items()
    }
    good = {200: {"description": summary, "content": {"application/json": {"schema": answer}}}}
    return {
        "response_model": None,
        "summary": summary,
        "operation_id": "post" + re.sub(r"\W+", "_", path),
        "tags": ["inference"],
        "responses": good | faults,
        "openapi_extra": {
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}
        },
    }


def _name(names: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(names), "description": "Name of a model"}


def _fault(path: str) -> dict[str, Any]:
    return _OPENAI_FAULT if path in OPENAI_PATHS else _FAULT


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema without references into its own definitions."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if reference is not None:
        return _inlined(definitions[reference.rpartition("/")[2]], definitions)
    return {key: _inlined(value, definitions) for key, value in schema.items()}
