"""Is pretraining worth it? The same shape, vocabulary size and epochs, with and without it.

    python -m benchmarks.pretraining_finetune --model runs/small-en --data ../shared/data

"From scratch" is what `litebert train` does without a model: its own vocabulary and word vectors
from the training texts, a start near the identity, its own learning rate. Finished rows are kept in
the JSON, so the measurement can be continued.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from litebert.model.config import AlbertConfig
from litebert.recipes.finetune.run import run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.run_folder import RunFolder, environment, model_folder
from litebert.settings import build_settings
from litebert.train.stop import StopRequest

RESULTS = Path(__file__).parent / "results" / "pretraining-finetune.json"
TASKS = {
    "SST-2": ("glue/SST-2", "glue/sst2", 2.0),
    "MRPC": ("glue/MRPC", "glue/mrpc", 3.0),
    "STS-B": ("glue/STS-B", "glue/stsb", 3.0),
    "CoLA": ("glue/CoLA", "glue/cola", 3.0),
    "RTE": ("glue/RTE", "glue/rte", 4.0),
}
"""Folder, task and epochs; the epochs are the same with and without pretraining."""
MAX_EXAMPLES = 20_000
"""Training examples at most: a sample of SST-2, all of the others."""
SHAPE = (
    "hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers",
    "embedding_size",
)  # fmt: skip


def ignore(event: object) -> None:
    del event


def measure(name: str, start: str, given: argparse.Namespace) -> dict[str, Any]:
    """Fine-tune once for each seed; return scores and what they depend on."""
    folder, task, epochs = TASKS[name]
    config = AlbertConfig.load(model_folder(Path(given.model)))
    if start == "pretrained":
        model: dict[str, Any] = {"source": given.model}
    else:
        shape = {key: getattr(config, key) for key in SHAPE}
        options = {"project_embeddings": config.has_projection}
        model = {
            "source": "small",
            "vocab_size": config.vocab_size,
            "config": {**shape, "litebert": options},
        }
    with tempfile.TemporaryDirectory() as scratch:
        settings = build_settings(
            FinetuneSettings,
            {
                "data": {
                    "train": str(Path(given.data) / folder),
                    "task": task,
                    "max_examples": MAX_EXAMPLES,
                },
                "model": model,
                "train": {
                    "epochs": epochs,
                    "threads": given.threads,
                    "guard": {"on_collapse": "warn", "restarts": 0},
                },
                "num_seeds": given.seeds,
            },
        )
        plan = make_plan(settings)
        run = RunFolder.create(Path(scratch) / "run", name="run")
        outcome = run_plan(plan, run, on_event=ignore, stop=StopRequest())
    metric = plan.task.metric
    finished = [seed for seed in outcome.seeds if seed.result is not None and seed.scores]
    scores = [seed.scores[metric] for seed in finished]
    return {
        "metric": metric,
        "scores": scores,
        "median": statistics.median(scores),
        "spread": max(scores) - min(scores),
        "majority": outcome.baselines[0].scores[metric],
        "tfidf": outcome.baselines[1].scores[metric],
        "train_examples": len(plan.train.examples),
        "eval_examples": len(plan.eval.examples),
        "epochs": epochs,
        "learning_rate": plan.settings.train.learning_rate,
        "batch_size": plan.settings.train.batch_size,
        "steps": [seed.result.step for seed in finished if seed.result],
        "seconds": [round(seed.result.seconds) for seed in finished if seed.result],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="run folder of `litebert pretrain`")
    parser.add_argument("--data", required=True, help="folder with the GLUE tasks")
    parser.add_argument("--only", default="SST-2,MRPC,STS-B")
    parser.add_argument("--starts", default="pretrained,scratch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    for name in given.only.split(","):
        for start in given.starts.split(","):
            known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"tasks": {}}
            if start in known["tasks"].get(name, {}):
                continue
            row = measure(name, start, given)
            print(name, start, json.dumps(row), flush=True)
            # Read again: another process may have measured another task meanwhile.
            known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"tasks": {}}
            known["environment"] = environment()
            known["tasks"].setdefault(name, {})[start] = row
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
