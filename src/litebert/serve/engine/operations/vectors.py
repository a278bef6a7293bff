"""Vectors as JSON: as numbers that give back the same float32, or as base64 of their bytes."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["openai_body", "rows_body", "shaped"]


def shaped(
    vectors: Float[np.ndarray, "N H"], *, dimensions: int | None, normalize: bool
) -> Float[np.ndarray, "N D"]:
    """Cut vectors to their first numbers, and scale them to length 1."""
    found = vectors if dimensions is None else vectors[:, :dimensions]
    if normalize:
        found = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    return np.ascontiguousarray(found, dtype="<f4")


def rows_body(vectors: Float[np.ndarray, "N D"]) -> bytes:
    """Return `[[number, ...], ...]`."""
    return f"[{','.join(_numbers(row) for row in vectors)}]".encode("ascii")


def openai_body(
    vectors: Float[np.ndarray, "N D"], *, model: str, tokens: int, is_base64: bool
) -> bytes:
    """Return the list object of the embeddings route of OpenAI."""
    parts = (
        json.dumps(base64.b64encode(row.tobytes()).decode("ascii")) if is_base64 else _numbers(row)
        for row in vectors
    )
    data = ",".join(
        f'{{"object":"embedding","index":{index},"embedding":{part}}}'
        for index, part in enumerate(parts)
    )
    rest: dict[str, Any] = {
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return f'{{"object":"list","data":[{data}],{json.dumps(rest)[1:]}'.encode("ascii")


def _numbers(row: Float[np.ndarray, " D"]) -> str:
    # Nine digits name a float32 exactly; one format of a whole row is quick.
    return "[" + (",".join(["%.9g"] * len(row)) % tuple(row.tolist())) + "]"
