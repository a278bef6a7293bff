"""What heads and FFN units are worth: accuracy over what is left, without and with healing, on two tasks.

    OMP_NUM_THREADS=1 python -m benchmarks.pruning --data ../shared/data --work runs/pruning [--only TREC]

Small shared encoders (4 depths of one block) are trained from scratch by the recipe behind
`litebert train`, pruned by that behind `litebert prune`, and healed on a part of the training data.
Trained models stay in the work folder, finished points in the JSON, so it can be continued. None of
the data's text is written.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litebert.checkpoint.weights import find_weights
from litebert.recipes.compress_heal import HealOptions, heal
from litebert.recipes.compress_measure import MeasureOptions
from litebert.recipes.evaluate import EvaluationJob, evaluate_folder
from litebert.recipes.figures import FIRST, SECOND, figure_style, new_figure, render, save_plots
from litebert.recipes.finetune.job import start_run
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.prune import PruneJob, prune_model
from litebert.recipes.run_folder import environment
from litebert.settings import build_settings
from litebert.train.stop import StopRequest

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "pruning.json"
PLOTS = ROOT / "docs" / "results" / "plots"
SHAPE = {
    "num_hidden_layers": 4,
    "hidden_size": 128,
    "embedding_size": 64,
    "num_attention_heads": 8,
    "intermediate_size": 512,
}
PANELS = (("heads", "heads", 8), ("ffn", "FFN units", 512))
HEADS = (8, 4, 2, 1)
UNITS = (256, 128, 64, 32, 16)


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set below the data folder, and how long is trained and healed."""

    name: str
    path: str
    task: str
    split: str
    epochs: float
    examples: int | None = None
    heal_examples: int | None = None


DATA_SETS = (
    DataSet("TREC", "nltk/qc.zip", "trec", "test", 6.0),
    DataSet("SST-2", "glue/SST-2", "glue/sst2", "eval", 2.0, 8_000, 3_000),
)


def unpacked(root: Path, data: DataSet, work: Path) -> Path:
    """Return the data; an archive is unpacked into the work folder."""
    path = root / data.path
    if path.suffix != ".zip":
        return path
    folder = work / path.stem
    if not folder.exists():
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    return next(inner.parent for inner in sorted(folder.rglob("train*")))


def trained(data: DataSet, path: Path, work: Path) -> Path:
    """Return the trained model, trained now where there is none."""
    folder = work / data.name
    if (folder / "model-best" / "config.json").exists():
        return folder / "model-best"
    values: dict[str, Any] = {
        "data": {"train": str(path), "task": data.task},
        "model": {"source": "tiny", "vocab_size": 4000, "config": SHAPE},
        "train": {"epochs": data.epochs, "learning_rate": 1e-3, "seed": 0},
        "num_seeds": 1,
        "has_baselines": False,
    }
    if data.examples is not None:
        values["data"]["max_examples"] = data.examples
    plan = make_plan(build_settings(FinetuneSettings, values, path=None, overrides=[]))
    run = start_run(plan, folder, "python -m benchmarks.pruning")
    run_plan(plan, run, on_event=_ignore, stop=StopRequest())
    return run.best


def _ignore(event: object) -> None:
    del event


def score(folder: Path, job: EvaluationJob) -> float:
    report: Any = evaluate_folder(folder, job)
    return float(report.evaluation.scores["accuracy"])


def parameters(folder: Path) -> int:
    total = 0
    for entry in find_weights(folder).entries.values():
        count = 1
        for size in entry.shape:
            count *= size
        total += count
    return total


def point(data: DataSet, path: Path, model: Path, work: Path, **sizes: int) -> dict[str, Any]:
    """Prune to some sizes, score, heal, score."""
    job = EvaluationJob(path, task=data.task, split=data.split)
    small, healed = work / "small", work / "healed"
    for folder in (small, healed, work / "healed-healing"):
        shutil.rmtree(folder, ignore_errors=True)
    measure = MeasureOptions(EvaluationJob(path, task=data.task))
    started = time.monotonic()
    prune_model(model, small, PruneJob(measure, examples=256, train=path, **sizes))
    row: dict[str, Any] = {**sizes, "parameters": parameters(small), "pruned": score(small, job)}
    overrides = [] if data.heal_examples is None else [f"data.max_examples={data.heal_examples}"]
    heal(
        small,
        healed,
        HealOptions(
            path, None, data.task, epochs=1.0, learning_rate=5e-4, overrides=tuple(overrides)
        ),
    )
    row["healed"] = score(healed, job)
    row["seconds"] = round(time.monotonic() - started, 1)
    return row


def draw(results: dict[str, Any]) -> None:
    """Accuracy over what is left."""
    with figure_style("pruning"):
        names = list(results["tasks"])
        figure = new_figure(7.6, 2.8 * len(names))
        grid = figure.subplots(len(names), 2, squeeze=False)
        for row, name in zip(grid, names, strict=True):
            task = results["tasks"][name]
            for axes, (kind, word, whole) in zip(row, PANELS, strict=True):
                rows = [item for item in task["points"] if kind in item]
                places = [item[kind] for item in rows]
                axes.plot(places, [r["pruned"] for r in rows], "o-", color=SECOND, label="pruned")
                axes.plot(places, [r["healed"] for r in rows], "o-", color=FIRST, label="healed")
                axes.axhline(task["accuracy"], linestyle=":", color=FIRST, label="whole model")
                axes.set_xscale("log", base=2)
                axes.set_xticks(places, [str(place) for place in places])
                axes.set_xlabel(f"{word} left, of {whole}")
                axes.set_ylabel(f"{name}: accuracy")
                axes.legend()
        plot = render(figure)
    if plot is not None:
        save_plots({"pruning": plot}, PLOTS)


def arguments(about: str | None) -> argparse.Namespace:
    """Return what the command line says: data, folder for models, and which tasks."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    return args


def prepared(args: argparse.Namespace) -> Iterator[tuple[DataSet, Path, Path, EvaluationJob]]:
    """Yield each task with its data, a model trained on them, and what that is scored on."""
    for data in DATA_SETS:
        if args.only and data.name not in args.only.split(","):
            continue
        path = unpacked(args.data, data, args.work)
        model = trained(data, path, args.work)
        yield data, path, model, EvaluationJob(path, task=data.task, split=data.split)


def main() -> None:
    args = arguments(__doc__)
    results: dict[str, Any] = {"tasks": {}}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    results |= {
        "format_version": 1,
        "command": "OMP_NUM_THREADS=1 python -m benchmarks.pruning --data ../shared/data --work runs/pruning",
        "shape": SHAPE,
        "environment": environment(),
    }
    for data, path, model, job in prepared(args):
        task = results["tasks"].setdefault(data.name, {"points": []})
        task |= {
            "accuracy": score(model, job),
            "parameters": parameters(model),
            "split": data.split,
        }
        plans: list[dict[str, int]] = [{"heads": heads} for heads in HEADS]
        plans += [{"ffn": units} for units in UNITS]
        for sizes in plans:
            done = [
                {k: v for k, v in row.items() if k in ("heads", "ffn")} for row in task["points"]
            ]
            if sizes in done:
                continue
            row = point(data, path, model, args.work, **sizes)
            task["points"].append(row)
            print(data.name, row, flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    draw(results)


if __name__ == "__main__":
    main()
