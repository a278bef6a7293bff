"""What a pruned model learns from: labels alone, or the answers of the unpruned model as well.

    OMP_NUM_THREADS=1 python -m benchmarks.healing --data ../shared/data --work runs/pruning

Goes on from the models that `benchmarks.pruning` trained. Each way heals the same pruned model for
the same steps, with three seeds of order and dropout; finished points stay in the JSON.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.pruning import arguments, parameters, prepared, score
from litebert.recipes.compress_heal import HealOptions, heal
from litebert.recipes.compress_measure import MeasureOptions
from litebert.recipes.evaluate import EvaluationJob
from litebert.recipes.prune import PruneJob, prune_model
from litebert.recipes.run_folder import environment

RESULTS = Path(__file__).parent / "results" / "healing.json"
WAYS = {"labels": None, "both": 0.5, "answers": 1.0}
"""Name -> the teacher's share of the loss."""
SIZES = ({"heads": 1}, {"heads": 2})
SEEDS = (0, 1, 2)


def main() -> None:
    args = arguments(__doc__)
    results: dict[str, Any] = {"points": []}
    if RESULTS.exists():
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
    results |= {
        "format_version": 1,
        "command": "OMP_NUM_THREADS=1 python -m benchmarks.healing --data ../shared/data "
        "--work runs/pruning",
        "environment": environment(),
    }
    for data, path, model, job in prepared(args):
        for sizes in SIZES:
            small = args.work / f"small-{data.name}-{sizes['heads']}"
            if not small.exists():
                measure = MeasureOptions(EvaluationJob(path, task=data.task))
                prune_model(model, small, PruneJob(measure, examples=256, train=path, **sizes))
            pruned = score(small, job)
            limit = data.heal_examples
            options = HealOptions(
                path,
                None,
                data.task,
                epochs=1.0,
                learning_rate=5e-4,
                overrides=() if limit is None else (f"data.max_examples={limit}",),
            )
            for seed in SEEDS:
                for way, share in WAYS.items():
                    key = {"task": data.name, **sizes, "seed": seed, "way": way}
                    if any(row | key == row for row in results["points"]):
                        continue
                    out = args.work / "healed-taught"
                    for folder in (out, out.with_name(out.name + "-healing")):
                        shutil.rmtree(folder, ignore_errors=True)
                    taught = {} if share is None else {"teacher": model, "teacher_share": share}
                    done = heal(small, out, replace(options, seed=seed, **taught))
                    row = key | {
                        "parameters": parameters(out),
                        "steps": done["steps"],
                        "pruned": pruned,
                        "healed": score(out, job),
                    }
                    results["points"].append(row)
                    print(row, flush=True)
                    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
