"""Make a finished student an encoder that comes with litebert.

python tools/package_encoder.py runs/small-en --words runs/small-en-words
python tools/package_encoder.py runs/tiny-en --name litebert-tiny-en
python tools/package_encoder.py --name litebert-tiny-en     # its card alone, with new scores
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from litebert.checkpoint.files import CARD_FILE
from litebert.checkpoint.fs import write_atomic
from litebert.errors import LitebertError
from litebert.models import DEFAULT, NAMES
from litebert.recipes.package import package_encoder

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "src" / "litebert" / "models"
RESULTS = ROOT / "benchmarks" / "results"
MOST_RUNTIME_BYTES = {"litebert-small-en": 7_000_000, "litebert-tiny-en": 3_000_000}
"""Of graph and tokenizer, which every installation carries."""


def card_of(name: str) -> Path:
    """Return the card without its scores, in this folder."""
    return ROOT / "tools" / f"{name}.md"


def results_of(name: str) -> Path:
    """Return the scores that `benchmarks.flagship` measured."""
    return RESULTS / f"{name}.json"


def results_table(results: Path) -> str:
    """Return the measured scores as Markdown tables; a sentence where nothing was measured yet."""
    if not results.exists():
        return "Not measured yet: `python -m benchmarks.flagship`."
    values: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    lines: list[str] = []
    vectors: dict[str, dict[str, float]] = values.get("vectors", {})
    if vectors:
        lines = ["| Vectors, nothing trained (Spearman) | STS-B | SICK |", "|---|---|---|"]
        lines += [
            f"| {side} | {row['STS-B']:.3f} | {row['SICK']:.3f} |" for side, row in vectors.items()
        ]
    tasks: dict[str, dict[str, Any]] = values.get("tasks", {})
    if tasks:
        lines += [
            "",
            "| Task | Score | Majority | TF-IDF | From scratch | Teacher | This encoder | ECE | Epochs | Seeds |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
    for name, row in tasks.items():
        cells = [
            row.get(key)
            for key in ("majority", "tfidf", "scratch", "teacher", "pretrained", "pretrained_ece")
        ]
        shown = ["-" if cell is None else f"{cell:.3f}" for cell in cells]
        seeds = len(row.get("pretrained_seeds", ()))
        epochs = row.get("pretrained_epochs") or "-"
        lines.append(f"| {name} | {row['metric']} | {' | '.join(shown)} | {epochs} | {seeds} |")
    words: dict[str, float] = values.get("words", {})
    if words:
        lines += [
            "",
            f"Masked words of WikiText-2: {words['first']:.1%} right at the first guess, "
            f"{words['among_five']:.1%} among five.",
        ]
    depths: dict[str, float] = values.get("depths", {})
    if depths:
        lines += [
            "",
            "Vectors after each depth, nothing trained for leaving early (STS-B, Spearman): "
            + ", ".join(f"{depth}: {score:.3f}" for depth, score in depths.items())
            + ".",
        ]
    return "\n".join(lines)


def card_text(name: str, results: Path) -> str:
    """Return the model card with the measured scores in it."""
    card = card_of(name).read_text(encoding="utf-8")
    return card.replace("RESULTS_TABLE", results_table(results))


def main() -> int:
    """Package, and print what came out; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "student",
        type=Path,
        nargs="?",
        help="run folder or model folder of the encoder; without it, its card is written anew",
    )
    parser.add_argument("--words", type=Path, help="run folder of the head for masked words")
    parser.add_argument("--name", choices=NAMES, default=DEFAULT, help="which one it becomes")
    parser.add_argument("--out", type=Path, help="folder; default: that of the name")
    parser.add_argument("--results", type=Path, help="scores for the card; default: of the name")
    parser.add_argument("--keep", action="store_true", help="refuse to replace what is there")
    given = parser.parse_args()
    out: Path = given.out or MODELS / given.name
    card = card_text(given.name, given.results or results_of(given.name))
    try:
        if given.student is None:
            write_atomic(out / CARD_FILE, card.encode())
            print(f"wrote {out / CARD_FILE}")
            return 0
        done = package_encoder(
            given.student,
            out,
            words=given.words,
            card=card,
            most_runtime_bytes=MOST_RUNTIME_BYTES[given.name],
            overwrite=not given.keep,
        )
    except LitebertError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print("\n".join(done.lines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
