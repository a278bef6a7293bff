"""What the server says about itself: alive, ready, which models, and which limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litebert import __version__

if TYPE_CHECKING:
    from litebert.serve.served import ServedModel
    from litebert.serve.service import Service

__all__ = ["info", "model_list"]


def info(service: Service, model: ServedModel) -> dict[str, Any]:
    """Return `/info`: the fields of text-embeddings-inference, and ours."""
    settings, facts = service.settings, model.info
    labels: list[str] = facts.get("labels", [])
    return {
        "model_id": model.name,
        "model_sha": None,
        "model_dtype": {"fp32": "float32", "fp16": "float16"}.get(
            facts.get("precision", ""), facts.get("precision")
        ),
        "model_type": _model_type(facts, labels, settings.pooling),
        "max_concurrent_requests": settings.max_concurrent_requests,
        "max_input_length": facts.get("max_input_length"),
        "max_batch_tokens": settings.max_request_tokens,
        "max_batch_requests": None,
        "max_client_batch_size": settings.max_client_batch_size,
        "auto_truncate": settings.auto_truncate,
        "tokenization_workers": 1,
        "version": __version__,
        "task": facts.get("task"),
        "head": facts.get("head"),
        "routes": facts.get("routes", []),
        "labels": labels,
        "is_pair": facts.get("is_pair", False),
        "kind": facts.get("kind"),
        "threshold": facts.get("threshold"),
        "text_columns": facts.get("text_columns", []),
        "task_max_length": facts.get("task_max_length"),
        "depths": facts.get("depths"),
        "depth": settings.depth,
        "exit": settings.exit_when,
        "exits": facts.get("exits", False),
        "curve": facts.get("curve"),
        "hidden_size": facts.get("hidden_size"),
        "vocab_size": facts.get("vocab_size"),
        "mask_token": facts.get("mask_token"),
        "threads": facts.get("threads"),
        "step_tokens": settings.batch_tokens,
        "max_wait_ms": settings.max_wait_ms,
        "timeout_seconds": settings.timeout_seconds,
        "max_body_bytes": settings.max_body_bytes,
        "models": list(service.models),
        "is_ready": model.is_ready,
    }


def model_list(service: Service) -> dict[str, Any]:
    """Return `/v1/models` as OpenAI has it."""
    return {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "created": 0, "owned_by": "litebert"}
            for name in service.models
        ],
    }


def _model_type(facts: dict[str, Any], labels: list[str], pooling: str) -> dict[str, Any]:
    if "/predict" in facts.get("routes", ()):
        table = dict(enumerate(labels))
        kind = "reranker" if "/rerank" in facts["routes"] else "classifier"
        return {
            kind: {
                "id2label": {str(number): name for number, name in table.items()},
                "label2id": {name: number for number, name in table.items()},
            }
        }
    return {"embedding": {"pooling": pooling}}
