"""Long reviews cut at a length against reviews read in windows, at equal numbers of trained tokens.

    python -m benchmarks.long_texts --data SHARED/data --model FOLDER [--only NAME,...] [--tokens 1000000]

Writes `benchmarks/results/long-texts.json`; what is there of other rows is kept.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import RunFolder
from litebert.settings import build_settings
from litebert.train.stop import StopRequest

RESULTS = Path(__file__).parent / "results" / "long-texts.json"
TRAIN, EVAL = 1000, 400
BATCH_TOKENS = 32 * 128
"""Tokens of an update, the same for all lengths."""


@dataclass(frozen=True)
class Row:
    """One way to read a review."""

    max_length: int
    stride: int | None = None

    def data(self) -> dict[str, Any]:
        """Return what it tells the settings."""
        windows = {"long_texts": "windows", "stride": self.stride} if self.stride else {}
        return {"max_length": self.max_length} | windows


ROWS = {
    "cut at 128": Row(128),
    "cut at 512": Row(512),
    "windows of 128, half overlapping": Row(128, 63),
    "windows of 128, end to end": Row(128, 126),
}


def tables(archive: Path, folder: Path) -> tuple[Path, Path]:
    """Write training and evaluation reviews, as many of each class, as tables."""
    found: dict[str, list[str]] = {"pos": [], "neg": []}
    with zipfile.ZipFile(archive) as file:
        for name in sorted(file.namelist()):
            kind = Path(name).parent.name
            if kind in found and name.endswith(".txt"):
                found[kind].append(file.read(name).decode("latin-1"))
    rows: dict[str, list[tuple[str, str]]] = {"train": [], "eval": []}
    for kind, texts in found.items():
        random.Random(0).shuffle(texts)
        rows["train"] += [(text, kind) for text in texts[: TRAIN // 2]]
        rows["eval"] += [(text, kind) for text in texts[-EVAL // 2 :]]
    for name, part in rows.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *part])
    return folder / "train.csv", folder / "eval.csv"


def measure(
    row: Row, train: Path, evaluation: Path, model: str, tokens: int, seeds: int
) -> dict[str, Any]:
    """Train one row; return scores by seed, texts cut, and time."""
    steps = max(1, tokens // BATCH_TOKENS)
    values = {
        "data": {"train": str(train), "eval": str(evaluation)} | row.data(),
        "model": {"source": model},
        "train": {
            "max_steps": steps,
            "batch_size": BATCH_TOKENS // row.max_length,
            "eval_steps": steps,
            "threads": 1,
            "patience": None,
            "precision": "fp32",
        },
        "num_seeds": seeds,
    }
    plan: Any = make_plan(build_settings(FinetuneSettings, values))
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder.create(Path(place) / "run", name="long")
        outcome = run_plan(plan, folder, on_event=lambda _: None, stop=StopRequest())
    return {
        "accuracy": [seed.scores.get("accuracy") for seed in outcome.seeds],
        "baselines": {b.name: b.scores["accuracy"] for b in outcome.baselines},
        "started_from": Path(model).name,
        "encoded": len(plan.train.encoded),
        "cut": plan.truncated_fraction,
        "steps": steps,
        "tokens_trained": steps * BATCH_TOKENS,
        "seconds": [seed.result.seconds if seed.result else None for seed in outcome.seeds],
    }


def main() -> None:
    """Measure the chosen rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="cut,windows")
    parser.add_argument("--model", required=True, help="encoder to start from, or scratch")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory() as place:
        train, evaluation = tables(given.data / "nltk" / "movie_reviews.zip", Path(place))
        for name, row in ROWS.items():
            if not any(word in name for word in given.only.split(",")):
                continue
            known[name] = measure(row, train, evaluation, given.model, given.tokens, given.seeds)
            RESULTS.write_text(json.dumps(known, indent=2) + "\n")
            print(name, known[name], flush=True)


if __name__ == "__main__":
    main()
