"""Tiny models of random weights, and the questions that ordinary clients ask them."""

from __future__ import annotations

import random
from pathlib import Path

from tests.serve_folders import WORDS, make_folder

from benchmarks.attack.clients import Question

__all__ = ["KINDS", "make_models", "questions", "texts", "vectors"]

KINDS = ("embed", "classify", "ner", "qa", "words")
ODD = (
    "",
    " ",
    "\u00a0",
    "anna\u0301 near Berlin",
    "灯 lamp 🪔",
    "a" * 200,
    "the [MASK] near the [SEP]",
    "\u202elamp",
)


def make_models(root: Path) -> dict[str, Path]:
    """Write one exported folder of each kind; return them by name."""
    return {kind: make_folder(kind, root / "models") for kind in KINDS}


def texts(rng: random.Random, count: int) -> list[str]:
    """Texts of 1 to 60 words, some of them odd."""
    found: list[str] = []
    for _ in range(count):
        if rng.random() < 0.2:
            found.append(rng.choice(ODD))
        else:
            words = max(1, min(60, round(rng.lognormvariate(1.8, 0.9))))
            found.append(" ".join(rng.choice(WORDS) for _ in range(words)))
    return found


def vectors(count: int, model: str | None = None, seed: int = 3) -> list[Question]:
    """Questions for vectors of one to four texts."""
    rng = random.Random(seed)
    extra = {} if model is None else {"model": model}
    return [
        Question("/embed", {"inputs": texts(rng, rng.choice((1, 1, 2, 4))), **extra})
        for _ in range(count)
    ]


def questions(seed: int = 3) -> list[Question]:
    """Questions of every route for a server of all kinds."""
    rng = random.Random(seed)
    found: list[Question] = []
    for _ in range(6):
        one, two = texts(rng, 2)
        words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 12)))
        found += [
            Question("/embed", {"model": "embed", "inputs": [one, two]}),
            Question("/predict", {"model": "classify", "inputs": one}),
            Question("/predict", {"model": "classify", "inputs": [two, one], "depth": 1}),
            Question("/v1/embeddings", {"model": "embed", "input": words}),
            Question("/rerank", {"model": "embed", "query": words, "texts": [words[:9], words[2:], "lamp"]}),
            Question("/similarity", {"model": "embed", "inputs": {"source_sentence": one, "sentences": [two]}}),
            Question("/tokenize", {"inputs": two}),
            Question("/v1/ner", {"model": "ner", "inputs": words}),
            Question("/v1/qa", {"model": "qa", "question": "who", "context": words}),
            Question("/v1/fill-mask", {"model": "words", "inputs": f"{words} [MASK]"}),
            Question("/models/classify", {"inputs": one}),
        ]  # fmt: skip
    return found
