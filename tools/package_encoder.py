"""Make a finished student the encoder that comes with litebert.

python tools/package_encoder.py runs/small-en --words runs/small-en-words
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from litebert.errors import LitebertError
from litebert.models import DEFAULT
from litebert.recipes.package import package_encoder

ROOT = Path(__file__).resolve().parent.parent
CARD = ROOT / "tools" / "encoder_card.md"
RESULTS = ROOT / "benchmarks" / "results" / "flagship.json"
MOST_RUNTIME_BYTES = 7_000_000
"""Of graph and tokenizer, which every installation carries."""


def results_table(results: Path) -> str:
    """Return the measured scores as a Markdown table; a sentence where nothing was measured yet."""
    if not results.exists():
        return "Not measured yet: `python -m benchmarks.flagship`."
    values: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    lines = [
        "| Task | Score | Majority | TF-IDF | From scratch | This encoder |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in values.get("tasks", {}).items():
        cells = [row.get(key) for key in ("majority", "tfidf", "scratch", "pretrained")]
        shown = ["-" if cell is None else f"{cell:.3f}" for cell in cells]
        lines.append(f"| {name} | {row['metric']} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def card_text(results: Path) -> str:
    """Return the model card with the measured scores in it."""
    return CARD.read_text(encoding="utf-8").replace("RESULTS_TABLE", results_table(results))


def main() -> int:
    """Package, and print what came out; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("student", type=Path, help="run folder or model folder of the encoder")
    parser.add_argument("--words", type=Path, help="run folder of the head for masked words")
    parser.add_argument("--out", type=Path, default=ROOT / "src" / "litebert" / "models" / DEFAULT)
    parser.add_argument("--results", type=Path, default=RESULTS, help="scores for the card")
    parser.add_argument("--keep", action="store_true", help="refuse to replace what is there")
    given = parser.parse_args()
    try:
        done = package_encoder(
            given.student,
            given.out,
            words=given.words,
            card=card_text(given.results),
            most_runtime_bytes=MOST_RUNTIME_BYTES,
            overwrite=not given.keep,
        )
    except LitebertError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print("\n".join(done.lines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
