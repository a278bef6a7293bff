"""Train small shared encoders that answer at every depth, and measure what exits gain on real data.

    python -m benchmarks.exits --data ../shared/data --work runs/exits [--model ENCODER] [--only TREC]

Each data set is trained by the recipe behind `litebert train` with `[exits] heads = true`, then
measured by the one behind `litebert exits`. Trained models stay in the work folder, finished sets in
the JSON, so that the measurement can be continued. None of the data's text is written.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
import zipfile
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from litebert.recipes.evaluate import EvaluationJob
from litebert.recipes.exits.plot import draw_exits
from litebert.recipes.exits.report import write_result
from litebert.recipes.exits.run import ExitJob, find_exits
from litebert.recipes.figures import save_plots
from litebert.recipes.finetune.job import start_run
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import environment
from litebert.settings import build_settings
from litebert.train.stop import StopRequest

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "exits.json"
PAGE = ROOT / "docs" / "results" / "exits.md"
PLOTS = ROOT / "docs" / "results" / "plots"
BAR, MAX_DROP = 1.7, 0.005
"""What is wanted: so many times the sentences per second, at most half a point lost."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set: where it lies below the data folder, and on what exits are chosen and measured."""

    name: str
    path: str
    task: str | None
    evaluation: str | None
    split: str
    epochs: float
    max_examples: int | None = None
    max_scored: int | None = None
    """Lines of the evaluation file that are used."""


DATA_SETS = (
    DataSet("SNIPS", "snips", "seq_in", None, "test", 0.8),
    DataSet("TREC", "nltk/qc.zip", "trec", None, "test", 4.0),
    DataSet(
        "AG News",
        "ag_news/train_subset_10k.tsv",
        "ag_news",
        "ag_news/test.csv",
        "auto",
        2.0,
        max_examples=2_000,
        max_scored=1_000,
    ),
    DataSet("Banking77", "banking77/train.csv", None, "banking77/test.csv", "auto", 8.0),
    DataSet("SST-2", "glue/SST-2", "glue/sst2", None, "eval", 2.0, max_examples=30_000),
)


def train(data_set: DataSet, args: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """Train one model, or find it trained; return its folder and what is known of the training."""
    work: Path = args.work
    folder = work / data_set.name.lower().replace(" ", "-")
    facts = folder / "benchmark.json"
    if facts.exists():
        return folder, json.loads(facts.read_text())
    path = _path(data_set, args)
    data: dict[str, Any] = {"train": str(path), "task": data_set.task}
    data["max_examples"] = data_set.max_examples
    config = {} if args.model else {
        "num_hidden_layers": args.depths,
        "hidden_size": args.hidden,
        "num_attention_heads": args.hidden // 32,
        "intermediate_size": 4 * args.hidden,
    }  # fmt: skip
    settings = build_settings(
        FinetuneSettings,
        {
            "data": {key: value for key, value in data.items() if value is not None},
            "model": {"source": str(args.model) if args.model else "tiny", "config": config},
            "train": {
                "epochs": data_set.epochs * args.epochs,
                "threads": args.threads,
                "batch_size": 64,
                "guard": {"on_collapse": "warn", "restarts": 0},
            }
            | ({} if args.learning_rate is None else {"learning_rate": args.learning_rate}),
            "exits": {"heads": True, "distill": args.distill},
            "num_seeds": 1,
            "has_baselines": False,
            "few_shot": False,
        },
    )
    plan = make_plan(settings)
    run = start_run(plan, folder, "python -m benchmarks.exits")
    start = time.monotonic()
    outcome = run_plan(plan, run, on_event=lambda _: None, stop=StopRequest())
    shape = plan.model.config
    result = outcome.seeds[0].result
    known = {
        "model": str(args.model) if args.model else "from scratch",
        "shape": f"{shape.num_hidden_layers} x {shape.hidden_size}",
        "train_examples": len(plan.train.examples),
        "seconds": round(time.monotonic() - start, 1),
        "steps": None if result is None else result.step,
        "status": None if result is None else result.status,
        "distill": args.distill,
    }
    facts.write_text(json.dumps(known))
    return folder, known


def measure(data_set: DataSet, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Measure one trained model at every depth and with every rule."""
    path = _scored(data_set, args)
    job = ExitJob(
        EvaluationJob(data=path, task=data_set.task, split=data_set.split),
        max_drop=MAX_DROP,
        timed=args.timed,
        rounds=args.rounds,
        threads=args.threads,
    )
    result = find_exits(folder, job)
    write_result(result)
    name = f"exits-{folder.name}"
    save_plots({name: draw_exits(result.curve)}, PLOTS)
    curve = result.curve
    points = [asdict(point) for point in curve.points if point.sentences_per_second is not None]
    return {
        "metric": curve.metric,
        "examples": curve.examples,
        "full": asdict(curve.full),
        "chosen": asdict(curve.chosen),
        "speedup": curve.speedup,
        "expected_drop": curve.expected_drop,
        "max_drop": curve.max_drop,
        "timed_points": points,
        "plot": f"plots/{name}.svg",
    }


def _path(data_set: DataSet, args: argparse.Namespace) -> Path:
    path: Path = args.data / data_set.path
    if path.suffix != ".zip":
        return path
    unpacked = args.work / "unpacked" / data_set.name
    if not unpacked.exists():
        with zipfile.ZipFile(path) as archive:
            archive.extractall(unpacked)
    return next(unpacked.iterdir())


def _scored(data_set: DataSet, args: argparse.Namespace) -> Path:
    """The file to choose and score on; a part of it in the work folder, where it is long."""
    if data_set.evaluation is None:
        return _path(data_set, args)
    path: Path = args.data / data_set.evaluation
    if data_set.max_scored is None:
        return path
    part = args.work / f"{data_set.max_scored}-of-{path.name}"
    with path.open(encoding="utf-8") as lines:
        part.write_text("".join(islice(lines, data_set.max_scored)), encoding="utf-8")
    return part


def write_page(results: dict[str, Any]) -> None:
    """Write the documentation page from the results."""
    rows = results["data_sets"]
    lines = [
        "# What exits gain",
        "",
        "Small encoders with one shared block, trained with a classifier at every depth",
        "(`[exits] heads = true`), measured by `litebert exits`: each sentence leaves the packed batch as",
        "soon as its answer is found. Beside the chosen rule: the score with all depths of the same model.",
        f"Allowed: {100 * MAX_DROP:g} points less; wanted: {BAR:g} times the sentences per second.",
        "",
        "The rule is chosen on the texts it is scored on, so it looks slightly better than it is. The",
        "last column tells how much: chosen on one half of the texts, scored on the other.",
        f"PyTorch, {results['threads']} thread, on a busy machine, in processor time; settings took turns,",
        "the fastest run counts. Operations fall by all depths / mean depth, speed by less.",
        "Reproduce with `python -m benchmarks.exits --data FOLDER --work FOLDER`; all numbers are in",
        "`benchmarks/results/exits.json`.",
        "",
        "| Data | Model | Metric | Texts | All depths | Chosen | Rule | Mean depth | Speed | On other texts |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        full, chosen, training = row["full"], row["chosen"], row["training"]
        cells = [
            name,
            f"{training['shape']}, {training['model']}",
            row["metric"],
            f"{row['examples']:,}",
            f"{full['score']:.4f}",
            f"{chosen['score']:.4f}",
            chosen["rule"] or f"depth {chosen['depth']}",
            f"{chosen['mean_depth']:.2f} of {full['depth']}",
            f"**x {row['speedup']:.2f}**",
            f"{-100 * row['expected_drop']:+.2f} points",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    reached = [name for name, row in rows.items() if row["speedup"] >= BAR]
    lines += [
        "",
        f"**{len(reached)} of {len(rows)} reach {BAR:g}**: {', '.join(reached) or 'none'}.",
        "",
    ]
    for name, row in rows.items():
        lines += [f"## {name}", "", f"![score by depth and speed, {name}]({row['plot']})", ""]
    PAGE.write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    """Measure what is not measured yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for trained models")
    parser.add_argument("--model", type=Path, help="encoder to start from; else from scratch")
    parser.add_argument("--only", help="some data sets only: TREC,SST-2")
    parser.add_argument("--depths", type=int, default=6, help="from scratch")
    parser.add_argument("--hidden", type=int, default=128, help="from scratch")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--distill", type=float, default=0.0)
    parser.add_argument("--epochs", type=float, default=1.0, help="factor of all epochs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--timed", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--again", action="store_true", help="measure trained models again")
    args = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    args.work.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"format_version": 1, "data_sets": {}}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text())
    wanted = None if args.only is None else args.only.split(",")
    for data_set in DATA_SETS:
        if wanted is not None and data_set.name not in wanted:
            continue
        if data_set.name in results["data_sets"] and not args.again and wanted is None:
            continue
        folder, known = train(data_set, args)
        row = measure(data_set, folder, args) | {"training": known}
        if RESULTS.exists():  # another process may have measured other sets meanwhile
            results = json.loads(RESULTS.read_text())
        results["data_sets"][data_set.name] = row
        results |= {"machine": environment(), "threads": args.threads}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        write_page(results)
        print(
            data_set.name,
            json.dumps({k: row[k] for k in ("full", "chosen", "speedup")}),
            flush=True,
        )


if __name__ == "__main__":
    main()
