"""Train from random weights on real public data, beside the baselines, and write JSON and a page.

    python -m benchmarks.finetune_scratch --data ../shared/data [--only trec,cola] [--seeds 3]

Each data set is trained by the recipe behind `litebert train`, with its defaults. Finished sets are
kept in the JSON, so the measurement can be continued. Data sets are read where they lie; none of
their text is written.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from litebert.recipes.finetune.run import RunEvent, run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import RunFolder, environment
from litebert.settings import build_settings
from litebert.train.events import Evaluated
from litebert.train.stop import StopRequest

RESULTS = Path(__file__).parent / "results" / "finetune-scratch.json"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "finetune-scratch.md"


@dataclass(frozen=True, slots=True)
class DataSet:
    """One measured data set: where it lies below the data folder, and how it is read."""

    name: str
    path: str
    task: str | None = None
    evaluation: str | None = None
    seeds: int = 3
    max_seconds: float = 300.0
    note: str = ""


DATA_SETS = (
    DataSet("TREC", "nltk/qc.zip", "trec", note="15 % held out; the official 500 are the test set"),
    DataSet("CoLA", "glue/CoLA", "glue/cola"),
    DataSet("MRPC", "glue/MRPC", "glue/mrpc"),
    DataSet("RTE", "glue/RTE", "glue/rte"),
    DataSet("STS-B", "glue/STS-B", "glue/stsb"),
    DataSet(
        "Financial PhraseBank",
        "financial_phrasebank/Sentences_50Agree.txt",
        "phrasebank",
        note="UTF-8 with BOM; 15 % held out",
    ),
    DataSet("TweetEval irony", "tweeteval/irony", "tweeteval"),
    DataSet(
        "JNLI",
        "jglue/jnli-v1.3",
        "jglue/jnli",
        note="Japanese; only the official validation file, 15 % of it held out",
    ),
    DataSet("SNIPS", "snips", "seq_in"),
    DataSet("Banking77", "banking77", None, note="evaluated on the official test set"),
    DataSet(
        "CLINC150",
        "clinc150/data_full.json",
        "clinc150",
        seeds=1,
        max_seconds=300,
        note="150 intents and out-of-scope",
    ),
    DataSet(
        "AG News",
        "ag_news/train_subset_10k.tsv",
        "ag_news",
        "ag_news/test.csv",
        seeds=1,
        max_seconds=300,
        note="10,001 of the official 120,000 training texts, official test set",
    ),
    DataSet("SST-2", "glue/SST-2", "glue/sst2", seeds=1, max_seconds=540),
)


def measure(
    data_set: DataSet, root: Path, seeds: int | None, threads: int | None
) -> dict[str, Any]:
    """Train one data set and return its row."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        settings = build_settings(
            FinetuneSettings, _settings(data_set, root, Path(scratch), seeds, threads)
        )
        plan = make_plan(settings)
        prepared = time.monotonic() - start
        evaluations: list[float] = []

        def listen(event: RunEvent) -> None:
            if isinstance(event, Evaluated):
                evaluations.append(event.seconds)

        folder = RunFolder.create(Path(scratch) / "run", name="run")
        outcome = run_plan(plan, folder, on_event=listen, stop=StopRequest())
    metric = plan.task.metric
    finished = [seed for seed in outcome.seeds if seed.result is not None and seed.scores]
    scores = [seed.scores[metric] for seed in finished]
    train_seconds = [seed.result.seconds for seed in finished if seed.result]
    tokens = sum(seed.result.tokens_seen for seed in finished if seed.result)
    config = plan.model.config
    return {
        "metric": metric,
        "train_examples": len(plan.train.examples),
        "eval_examples": len(plan.eval.examples),
        "scores": scores,
        "median": statistics.median(scores),
        "spread": max(scores) - min(scores),
        "all_scores": outcome.chosen.scores if outcome.chosen else {},
        "majority": outcome.baselines[0].scores[metric],
        "tfidf": outcome.baselines[1].scores[metric],
        "tfidf_seconds": round(outcome.baselines[1].seconds, 1),
        "test": outcome.test_scores.get(metric),
        "seconds_per_seed": round(statistics.median(train_seconds), 1),
        "evaluation_seconds": round(sum(evaluations) / len(finished), 1),
        "prepare_seconds": round(prepared, 1),
        "tokens_per_second": round(tokens / sum(train_seconds)),
        "steps": [seed.result.step for seed in finished if seed.result],
        "restarts": sum(len(seed.result.attempts) for seed in finished if seed.result),
        "ece_before": outcome.ece_before,
        "ece_after": outcome.ece_after,
        "shape": f"{config.num_hidden_layers} x {config.hidden_size}, E {config.embedding_size}, V {config.vocab_size}",
        "parameters": plan.model.describe().split(",")[1].strip(),
        "max_length": plan.task.max_length,
        "learning_rate": plan.settings.train.learning_rate,
        "epochs": plan.settings.train.epochs,
        "max_seconds_per_seed": data_set.max_seconds,
        "note": data_set.note,
    }


def _settings(
    data_set: DataSet, root: Path, scratch: Path, seeds: int | None, threads: int | None
) -> dict[str, Any]:
    path = root / data_set.path
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            archive.extractall(scratch / "unpacked")
        path = next((scratch / "unpacked").iterdir())
    data = {"train": str(path), "task": data_set.task}
    if data_set.evaluation:
        data["eval"] = str(root / data_set.evaluation)
    if data_set.name == "Banking77":
        data |= {"train": str(path / "train.csv"), "eval": str(path / "test.csv")}
    if data_set.name == "AG News":
        data["train"] = str(path)
    known = {key: value for key, value in data.items() if value is not None}
    return {
        "data": known,
        "model": {"source": "scratch"},
        # A collapse is a result here, not a reason to try again.
        "train": {
            "max_seconds": data_set.max_seconds,
            "guard": {"on_collapse": "warn", "restarts": 0},
        }
        | ({"threads": threads} if threads else {}),
        "num_seeds": seeds or data_set.seeds,
    }


def write_page(results: dict[str, Any]) -> None:
    """Write the documentation page from the results."""
    rows = results["data_sets"]
    cores = results["machine"]["cores"]
    lines = [
        "# Fine-tuning from scratch",
        "",
        "Random weights, no pretraining, the defaults of `litebert train`: what a small model learns",
        "from the training texts alone, beside the most frequent answer and TF-IDF with logistic (or",
        "ridge) regression on the same split. Scores are on the evaluation split, which also chose the",
        "best step; the median over the seeds, and their spread. Test is another set, scored once with",
        "the best seed.",
        f"Measured with {cores} thread on a busy machine, each seed within the stated seconds, in which it",
        "often could not finish its schedule, so the defaults with more time may score higher.",
        "Reproduce with `python -m benchmarks.finetune_scratch --data FOLDER`; all numbers are in",
        "`benchmarks/results/finetune-scratch.json`.",
        "",
        "| Data | Metric | Train | Eval | Majority | TF-IDF | litebert | Spread | Seeds | Test | Seconds "
        "| Tokens/s | Beats TF-IDF |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        cells = [
            name,
            row["metric"],
            f"{row['train_examples']:,}",
            f"{row['eval_examples']:,}",
            f"{row['majority']:.3f}",
            f"{row['tfidf']:.3f}",
            f"**{row['median']:.3f}**",
            f"{row['spread']:.3f}",
            str(len(row["scores"])),
            "" if row["test"] is None else f"{row['test']:.3f}",
            f"{row['seconds_per_seed']:,.0f}",
            f"{row['tokens_per_second']:,}",
            "yes" if row["median"] > row["tfidf"] else "no",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    losing = [name for name, row in rows.items() if row["median"] <= row["tfidf"]]
    lines += [
        "",
        f"**TF-IDF wins on {len(losing)} of {len(rows)}**"
        + (f": {', '.join(losing)}." if losing else "."),
        "That is what to expect without pretraining: the model has to learn what words mean from the",
        "labels alone.",
        "Where word order or the relation of two texts matters more than topic words, neither gets far.",
        "",
        "Notes: "
        + "; ".join(f"{name}: {row['note']}" for name, row in rows.items() if row["note"])
        + ".",
        "",
        "Shapes and time budgets: "
        + "; ".join(
            f"{name} {row['shape']} ({row['parameters']}), {row['max_seconds_per_seed']:.0f} s a seed"
            for name, row in rows.items()
        )
        + ".",
    ]
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Measure what is asked for and not measured yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--only", default="", help="comma-separated names")
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    results = (
        json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"data_sets": {}}
    )
    results["machine"] = environment() | {"cores": torch.get_num_threads()}
    wanted = {name.strip().lower() for name in arguments.only.split(",") if name.strip()}
    for data_set in DATA_SETS:
        is_wanted = not wanted or data_set.name.lower() in wanted
        if not is_wanted or (data_set.name in results["data_sets"] and not arguments.again):
            continue
        row = measure(data_set, arguments.data, arguments.seeds, arguments.threads)
        results["data_sets"][data_set.name] = row
        figures = f"{row['median']:.4f}  tfidf {row['tfidf']:.4f}  majority {row['majority']:.4f}"
        print(f"{data_set.name:<22} {row['metric']:<18} {figures}", flush=True)
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        order = [known.name for known in DATA_SETS if known.name in results["data_sets"]]
        results["data_sets"] = {name: results["data_sets"][name] for name in order}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        write_page(results)


if __name__ == "__main__":
    main()
