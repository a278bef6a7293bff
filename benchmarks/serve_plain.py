"""The servers that one writes first: FastAPI, one request at a time, ONNX Runtime or transformers.

`python -m benchmarks.serve_plain PORT onnx FOLDER GRAPH [--pad 128]`: the usual int8 graph; texts of a
request are padded to its longest, or all to so many tokens, as `padding="max_length"` does.
`python -m benchmarks.serve_plain PORT transformers FOLDER`: a text-classification pipeline.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

LABELS = ("bad", "good", "so-so")

Answer = list[list[dict[str, Any]]]


class Inputs(BaseModel):
    """Body of the route."""

    inputs: list[str]


def with_onnx(folder: Path, graph: str, pad: int | None) -> Callable[[list[str]], Answer]:
    """Return a function that answers texts with ONNX Runtime."""
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(pad or 512)
    tokenizer.enable_padding(length=pad)
    session = onnxruntime.InferenceSession(str(folder / graph))

    def predict(texts: list[str]) -> Answer:
        found = tokenizer.encode_batch(texts)
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

    return predict


def with_transformers(folder: Path) -> Callable[[list[str]], Answer]:
    """Return a function that answers texts with a pipeline, as its documentation shows."""
    from transformers import pipeline

    pipe = pipeline("text-classification", model=str(folder), top_k=None, device="cpu")

    def predict(texts: list[str]) -> Answer:
        return pipe(texts, truncation=True, batch_size=len(texts))  # type: ignore[return-value]

    return predict


def make_app(answer: Callable[[list[str]], Answer]) -> FastAPI:
    app = FastAPI()

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/predict")
    def predict(body: Inputs) -> Answer:
        return answer(body.inputs)

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("kind", choices=("onnx", "transformers"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("graph", nargs="?", default="")
    parser.add_argument("--pad", type=int)
    told = parser.parse_args()
    answer = (
        with_transformers(told.folder)
        if told.kind == "transformers"
        else with_onnx(told.folder, told.graph, told.pad)
    )
    uvicorn.run(make_app(answer), port=told.port, log_level="warning")


if __name__ == "__main__":
    main()
