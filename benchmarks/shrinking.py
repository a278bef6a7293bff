"""From the teacher's 23 million parameters to 2 million: what each step costs, one row a model.

    python -m benchmarks.shrinking --teacher FOLDER --runs runs [--data ../shared/data] [--again]

Needs the folders that `make flagship` leaves in `runs` and the two encoders in the package. For each
model: parameters, bytes on disk, speed (all in turns, one thread), Spearman correlation on STS-B and
SICK with nothing trained, the mean cosine of its vectors with the teacher's on the sentences of STS-B,
and the accuracy of logistic regression on its vectors of the bundled messages. Writes
benchmarks/results/shrinking.json and the table in docs/explanation/from-23-to-2-million.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.flagship import correlation
from benchmarks.measuring import seconds
from litebert.data.readers import ReadOptions
from litebert.models import path as named
from litebert.recipes.compress_measure import weight_bytes
from litebert.recipes.plain_folder import plain_folder
from litebert.recipes.predictor import Predictor
from litebert.recipes.quickstart import data_files
from litebert.recipes.run_folder import environment, model_folder
from litebert.runtime.session import Session
from litebert.runtime.text_model import TextModel
from litebert.tasks.records import RECORD_KINDS

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "shrinking.json"
PAGE = ROOT / "docs" / "explanation" / "from-23-to-2-million.md"
TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.DOTALL)
ROUNDS = 5
SPEED_TEXTS = 256


@dataclass(frozen=True)
class Step:
    """One row: what was done, and where its result lies."""

    name: str
    folder: Path
    is_graph: bool = False

    def load(self) -> TextModel:
        """Return the model, on one thread."""
        return Session(self.folder, threads=1) if self.is_graph else Predictor.load(self.folder)


def steps(teacher: Path, runs: Path) -> list[Step]:
    """Return the rows in order."""
    return [
        Step("the teacher", teacher),
        Step("fold: three of six blocks, each run twice; table cut to 128", runs / "fold-small-en"),
        Step("prune: 888 of 1,536 units, 16,000 of 30,522 pieces", runs / "start-small-en"),
        Step("distil: litebert-small-en", model_folder(runs / "small-en")),
        Step("quantize: int8", named("litebert-small-en"), is_graph=True),
        Step("prune: 6 of 12 heads, 200 units, 7,700 pieces", runs / "start-tiny-en"),
        Step("distil: litebert-tiny-en", model_folder(runs / "tiny-en")),
        Step("quantize: int8 (tiny)", named("litebert-tiny-en"), is_graph=True),
    ]


def file_bytes(step: Step) -> int:
    """Return the bytes that this form needs: weights, or graph, and the vocabulary not counted."""
    if step.is_graph:
        return sum(path.stat().st_size for path in (step.folder / "onnx").iterdir())
    return weight_bytes(step.folder)


def parameters(model: TextModel) -> int | None:
    """Return the stored weights that a vector needs: without the pooler."""
    if not isinstance(model, Predictor):
        return None
    return sum(
        weight.numel() for name, weight in model.model.named_parameters() if "pooler" not in name
    )


def messages_accuracy(model: TextModel) -> float:
    """Return the accuracy of logistic regression on vectors of the bundled messages."""
    sides: list[tuple[Any, list[str]]] = []
    for path in data_files():
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        sides.append((model.embed([row["text"] for row in rows]), [row["intent"] for row in rows]))
    (train, labels), (held, wanted) = sides
    fitted = LogisticRegression(max_iter=2000, C=10.0).fit(train, labels)
    return float(np.mean(fitted.predict(held) == np.array(wanted)))


def sentences(data: Path) -> list[str]:
    """Return the distinct sentences of the development part of STS-B."""
    source: Any = RECORD_KINDS.get("stsb").read(data / "glue" / "STS-B", ReadOptions(), True)
    return sorted({text for record in source.eval.records for text in record.texts})


def table(rows: dict[str, dict[str, Any]]) -> str:
    """Return the Markdown table."""
    lines = [
        "| Step | Parameters | File | Texts a second | STS-B | SICK | Cosine with the teacher | Messages |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in rows.items():
        count = "" if row["parameters"] is None else f"{row['parameters'] / 1e6:.2f} M"
        lines.append(
            f"| {name} | {count} | {row['bytes'] / 1e6:.1f} MB | {row['texts_per_second']:,.0f} | "
            f"{row['STS-B']:.3f} | {row['SICK']:.3f} | {row['cosine']:.3f} | {row['messages']:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every step that is there and write table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--again", action="store_true", help="measure what is known, too")
    given = parser.parse_args()
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows: dict[str, dict[str, Any]] = {} if given.again else known.get("rows", {})
    texts = sentences(given.data)
    with tempfile.TemporaryDirectory() as scratch:
        chain = steps(plain_folder(given.teacher, Path(scratch)), given.runs)
        models = {step.name: step.load() for step in chain}
        reference = models[chain[0].name].embed(texts)
        for step in chain:
            if step.name in rows:
                continue
            vectors = models[step.name].embed(texts)
            rows[step.name] = {
                "parameters": parameters(models[step.name]),
                "bytes": file_bytes(step),
                "cosine": float((vectors * reference).sum(1).mean()),
                "messages": messages_accuracy(models[step.name]),
                **{name: correlation(step.load(), name, given.data) for name in ("STS-B", "SICK")},
            }
            print(step.name, rows[step.name], flush=True)
        # Speed is compared in one run, all of them in turns.
        runs: dict[str, Callable[[], Any]] = {
            name: lambda model=model: model.embed(texts[:SPEED_TEXTS])
            for name, model in models.items()
        }
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(ROUNDS):
            for name, run in runs.items():
                taken[name].append(seconds(run))
        for name, times in taken.items():
            rows[name]["texts_per_second"] = SPEED_TEXTS / sorted(times)[ROUNDS // 2]
    ordered = {step.name: rows[step.name] for step in chain}
    RESULTS.write_text(json.dumps({"rows": ordered, "environment": environment()}, indent=1) + "\n")
    PAGE.write_text(TABLE.sub(lambda _: table(ordered), PAGE.read_text()))
    print(table(ordered))


if __name__ == "__main__":
    main()
