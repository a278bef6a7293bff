"""What options of fine-tuning give, and how many weights each trains, from one pretrained encoder.

    python -m benchmarks.adaptation --model runs/small-en --data ../shared/data [--only TREC]

Two tasks of 2,000 training examples, two seeds, everything else as `litebert train` does it. Each
row changes one thing, but methods that train few weights have a higher rate. Finished rows are kept
in the JSON; `--page` writes the page alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring import machine
from litebert.model.config import AlbertConfig
from litebert.recipes.finetune.adapt import count_trained
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import RunFolder, model_folder
from litebert.settings import build_settings
from litebert.train.stop import StopRequest

RESULTS = Path(__file__).parent / "results" / "adaptation.json"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "adaptation.md"
MAX_EXAMPLES = 2_000
EPOCHS = 2.0
SEEDS = 2
TASKS = {"SST-2": ("glue/SST-2", "glue/sst2"), "TREC": ("nltk/qc.zip", "trec")}
"""Where each lies below the data folder, and its name."""


@dataclass(frozen=True, slots=True)
class Row:
    """One change: its name, its settings, and the learning rate."""

    name: str
    told: tuple[str, ...]
    rate: float = 1e-3
    tasks: tuple[str, ...] = tuple(TASKS)


DROPOUT = "model.config.hidden_dropout_prob=0.1"
HIGH = 4e-3
"""Where few weights are trained they have further to go."""
ROWS = (
    Row("everything", ()),
    Row("only LoRA, rank 8", ("adapt.method=lora",), HIGH),
    Row("only bottlenecks of 16", ("adapt.method=adapters",), HIGH),
    Row("only norms of depths", ("adapt.method=norms",), HIGH),
    Row("only pooler and head", ("adapt.method=head",), HIGH),
    Row("embeddings frozen", ("adapt.freeze=embeddings",)),
    Row("everything + norms of depths", ("adapt.depth_norms=true",)),
    Row("decay by depth 0.8", ("train.depth_decay=0.8",)),
    Row("label smoothing 0.1", ("loss.label_smoothing=0.1",), tasks=("TREC",)),
    Row("class weights, balanced", ("loss.class_weights=balanced",), tasks=("TREC",)),
    Row("moving average", ("train.averaging.start_fraction=0.3",), tasks=("TREC",)),
    Row("dropout 0.1", (DROPOUT,), tasks=("TREC",)),
    Row("dropout 0.1, R-Drop 1", ("loss.r_drop=1.0", DROPOUT), tasks=("TREC",)),
)


def ignore(event: object) -> None:
    del event


def measure(task: str, row: Row, given: argparse.Namespace) -> dict[str, Any]:
    """Fine-tune once for each seed; return scores and cost."""
    folder, name = TASKS[task]
    values: dict[str, Any] = {
        "data": {
            "task": name,
            "max_examples": MAX_EXAMPLES,
        },
        "model": {"source": given.model},
        "train": {
            "epochs": EPOCHS,
            "learning_rate": row.rate,
            "threads": 1,
            "precision": "fp32",
            "guard": {"on_collapse": "warn", "restarts": 0},
        },
        "num_seeds": SEEDS,
        "has_baselines": False,
    }
    with tempfile.TemporaryDirectory() as scratch:
        train = Path(given.data) / folder
        if train.suffix == ".zip":
            with zipfile.ZipFile(train) as archive:
                archive.extractall(scratch)
            train = Path(scratch) / train.stem
        values["data"] |= {"train": str(train)}
        plan = make_plan(build_settings(FinetuneSettings, values, overrides=row.told))
        start = time.process_time()
        run = RunFolder.create(Path(scratch) / "run", name="run")
        outcome = run_plan(plan, run, on_event=ignore, stop=StopRequest())
        spent = time.process_time() - start
    metric = plan.task.metric
    scores = [seed.scores[metric] for seed in outcome.seeds if seed.scores]
    counts = count_trained(plan.model.config, plan.task.head, plan.settings.adapt)
    return {
        "rate": row.rate,
        "metric": metric,
        "scores": scores,
        "mean": statistics.mean(scores),
        "accuracy": statistics.mean(
            seed.scores["accuracy"] for seed in outcome.seeds if seed.scores
        ),
        "spread": max(scores) - min(scores),
        "test": outcome.test_scores.get(metric),
        "trained": counts.trained,
        "total": counts.total,
        "cpu_seconds_per_run": spent / SEEDS,
        "train_examples": len(plan.train.examples),
        "eval_examples": len(plan.eval.examples),
    }


def shape_of(model: str) -> dict[str, int]:
    config = AlbertConfig.load(model_folder(Path(model)))
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "embedding_size")
    return {name: getattr(config, name) for name in (*names, "vocab_size")}


def write_page(found: dict[str, Any]) -> None:
    shape = found["model"]
    lines = [
        "# Adaptation",
        "",
        "What each option of fine-tuning gives, and how many weights it trains. Terms and settings are explained in",
        "[Adapting a shared encoder](../explanation/adaptation.md).",
        "",
        f"Encoder: {shape['num_hidden_layers']} depths of width {shape['hidden_size']} that share one block, "
        f"{shape['vocab_size']:,} pieces, pretrained by `litebert pretrain` for about",
        f"an hour on one CPU core. {MAX_EXAMPLES:,} training examples, {EPOCHS:g} epochs, {SEEDS} seeds, batches of "
        "32; the best of the evaluated epochs counts.",
        "Where few weights are trained the rate is higher; neither was tuned. CPU seconds are for one run, evaluations",
        "included, on a busy machine.",
        "",
    ]
    for task, rows in found["tasks"].items():
        if rows.get("everything"):
            lines += table_of(task, rows)
    about = found["machine"]
    lines += [
        f"Measured on {about['cpu']}, one thread of {about['cores']} cores, torch {about['torch']}. Made by",
        "`python -m benchmarks.adaptation`; numbers in `benchmarks/results/adaptation.json`.",
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table_of(task: str, rows: dict[str, dict[str, Any]]) -> list[str]:
    first = rows["everything"]
    points, metric = 50 / first["eval_examples"] ** 0.5, first["metric"]
    more = [] if metric == "accuracy" else ["accuracy"]
    head = ["What", "Weights trained", "Share", "Rate", metric, "Seeds apart", *more, "CPU s"]
    lines = [
        f"## {task}",
        "",
        f"{first['train_examples']:,} examples to train on, {first['eval_examples']:,} to score on; an accuracy on so "
        f"many has a standard error of up to {points:.1f} points,",
        "so many differences below are within chance.",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
    ]
    for row in ROWS:
        one = rows.get(row.name)
        if one:
            cells = [row.name, f"{one['trained']:,}", f"{one['trained'] / one['total']:.1%}"]
            cells += [f"{one['rate']:g}", f"{one['mean']:.3f}", f"{one['spread']:.3f}"]
            cells += [f"{one[name]:.3f}" for name in more] + [f"{one['cpu_seconds_per_run']:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    missing = [row.name for row in ROWS if row.name not in rows]
    if missing:
        lines += ["", f"Not measured: {'; '.join(missing)}."]
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="run folder of `litebert pretrain`, or model folder")
    parser.add_argument("--data", help="folder with the data sets")
    parser.add_argument("--only", default=",".join(TASKS))
    parser.add_argument("--page", action="store_true", help="write the page from the JSON alone")
    parser.add_argument("--budget", type=float, default=1e9, help="CPU seconds for this call")
    given = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"tasks": {}}
    if not given.page:
        found |= {"machine": machine(), "model": shape_of(given.model)}
        for row in ROWS:
            for task in given.only.split(","):
                rows = found["tasks"].setdefault(task, {})
                if row.name in rows or task not in row.tasks or time.process_time() > given.budget:
                    continue
                rows[row.name] = measure(task, row, given)
                print(task, row.name, json.dumps(rows[row.name]), flush=True)
                RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    write_page(found)


if __name__ == "__main__":
    main()
