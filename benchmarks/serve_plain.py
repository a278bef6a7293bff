"""The server that one writes first: FastAPI, the usual int8 graph in ONNX Runtime, one request at a time.

Texts of a request are padded to its longest. `python -m benchmarks.serve_plain FOLDER PORT`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from tokenizers import Tokenizer

LABELS = ("bad", "good", "so-so")


class Inputs(BaseModel):
    """Body of the route."""

    inputs: list[str]


def make_app(folder: Path, graph: str) -> FastAPI:
    app = FastAPI()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(512)
    tokenizer.enable_padding()
    session = onnxruntime.InferenceSession(str(folder / graph))

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/predict")
    def predict(body: Inputs) -> list[list[dict[str, Any]]]:
        found = tokenizer.encode_batch(body.inputs)
        given = {
            "input_ids": np.array([e.ids for e in found], np.int64),
            "attention_mask": np.array([e.attention_mask for e in found], np.int64),
            "token_type_ids": np.array([e.type_ids for e in found], np.int64),
        }
        (logits,) = session.run(["logits"], given)
        e = np.exp(logits - logits.max(-1, keepdims=True))
        rows = e / e.sum(-1, keepdims=True)
        return [
            [{"label": name, "score": float(p)} for name, p in zip(LABELS, row, strict=True)]
            for row in rows
        ]

    return app


if __name__ == "__main__":
    uvicorn.run(
        make_app(Path(sys.argv[1]), sys.argv[2]), port=int(sys.argv[3]), log_level="warning"
    )
