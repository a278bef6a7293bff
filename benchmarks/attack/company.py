"""What a request gets in any company beside what it gets alone."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from tests.serve_folders import WORDS, make_folder

from benchmarks.attack.clients import Question, ask
from benchmarks.attack.models import texts
from benchmarks.attack.server import Server

__all__ = ["company"]

ROUNDS = 60
BOUND = 1e-5
"""In float32, of numbers that are 1 at most."""
ENGLISH = (
    "The kettle leaks at the handle after two weeks.",
    "Delivery took nine days, but the lamp is lovely.",
    "Is the ladder safe on gravel?",
    "No.",
    "It rained all night, and in the morning the river had taken the lower bridge and half of the mill with it.",
)


async def company(root: Path, folder: Path | None) -> dict[str, Any]:
    """Compare vectors and probabilities of tiny models in both precisions, and vectors of a given one."""
    found: dict[str, Any] = {}
    for precision in ("fp32", "int8"):
        for kind, path in (("embed", "/embed"), ("classify", "/predict")):
            made = make_folder(kind, root / precision, precision=precision)
            found[f"{precision}_{kind}"] = await _compare(made, path, precision)
    if folder is not None:
        row = await _compare(folder, "/embed", "given", rounds=ROUNDS // 4)
        found[f"given_{folder.name}"] = row
    return found


async def _compare(folder: Path, path: str, precision: str, rounds: int = ROUNDS) -> dict[str, Any]:
    rng = random.Random(11)
    server = Server(folder, "--set", "watch=false", "--set", "max_wait_ms=20")
    try:
        pool = list(dict.fromkeys([*texts(rng, 60), *ENGLISH, " ".join(WORDS * 20)]))
        alone = [(await _ask(server.port, path, [text]))[0] for text in pool]
        worst, cosine, count, wrong = 0.0, 1.0, 0, 0
        for _ in range(rounds):
            # One to eight requests at once, of one to eight texts each, chosen and ordered by chance.
            groups = [
                rng.choices(range(len(pool)), k=rng.randint(1, 8)) for _ in range(rng.randint(1, 8))
            ]
            answers = await asyncio.gather(
                *(_ask(server.port, path, [pool[i] for i in group]) for group in groups)
            )
            for group, rows in zip(groups, answers, strict=True):
                wrong += len(group) != len(rows)
                for place, row in zip(group, rows, strict=True):
                    one, other = np.array(alone[place]), np.array(row)
                    far = float(np.abs(one - other).max())
                    worst, count = max(worst, far), count + 1
                    cosine = min(
                        cosine, float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
                    )
                    wrong += precision == "fp32" and far > BOUND
        server.end()
    finally:
        server.kill()
    return {
        "compositions": rounds, "results": count, "wrong": wrong,
        "bound": BOUND if precision == "fp32" else "measured", "most_difference": float(f"{worst:.3g}"),
        "least_cosine": round(cosine, 7),
    }  # fmt: skip


async def _ask(port: int, path: str, inputs: list[str]) -> list[list[float]]:
    answer, _ = await ask(port, Question(path, {"inputs": inputs}).raw("Connection: close"))
    assert answer.status == 200, answer.body[:300]
    found = json.loads(answer.body)
    if path == "/embed":
        return found
    # By label: labels come best first.
    return [[row["score"] for row in sorted(rows, key=lambda row: row["label"])] for rows in found]
