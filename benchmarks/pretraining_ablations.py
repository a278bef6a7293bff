"""The paper's ablations in miniature: equal steps, several seeds, one change at a time.

    python -m benchmarks.pretraining_ablations --shards SHARDS --eval-shards OTHER

Order of sentences (Lan et al. 2020, Table 5), sharing (Table 4), embedding size (Table 3).
Finished runs are kept in the JSON, so the measurement can be continued; --page writes the page and
its plot from what is there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from litebert.model.counting import parameter_count
from litebert.objectives.loss import PretrainingLoss
from litebert.recipes.pretrain.evaluate import PretrainEvaluator, make_eval_batch
from litebert.recipes.pretrain.plan import make_plan
from litebert.recipes.pretrain.run import new_model
from litebert.recipes.pretrain.settings import PretrainSettings
from litebert.recipes.run_folder import environment
from litebert.settings import build_settings
from litebert.train.loop import fit
from litebert.train.precision import Precision
from litebert.train.stop import StopRequest

RESULTS = Path(__file__).parent / "results" / "pretraining-ablations.json"
HIDDEN = 128
BASE: dict[str, Any] = {"order": "sop", "sharing": "all", "embedding": 64}
CHANGES: dict[str, tuple[dict[str, Any], ...]] = {
    "order": ({"order": "none"}, {"order": "nsp"}, {}),
    "sharing": (
        {},
        {"sharing": "attention_only"},
        {"sharing": "ffn_only"},
        {"sharing": "cycle"},
        {"sharing": "none"},
    ),
    "embedding": ({"embedding": 32}, {}, {"embedding": HIDDEN}),
}
"""E is {H/4, H/2, H}: the paper's {64, 128, 768} has no room below a width of 128."""


def settings_of(change: dict[str, Any], seed: int, given: argparse.Namespace) -> PretrainSettings:
    """Return the run of one configuration."""
    chosen = BASE | change
    groups = {"sharing": chosen["sharing"], "project_embeddings": True}
    config: dict[str, Any] = {
        "embedding_size": chosen["embedding"],
        "hidden_size": HIDDEN,
        "intermediate_size": 4 * HIDDEN,
        "num_attention_heads": 4,
        "num_hidden_layers": 4,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "litebert": groups,
    }
    if chosen["sharing"] == "cycle":
        config["num_hidden_groups"] = 2
    return build_settings(
        PretrainSettings,
        {
            "data": {
                "shards": given.shards,
                "eval_shards": given.eval_shards,
                "max_length": 96,
                "eval_examples": 512,
            },
            "model": {"source": "small", "start": given.start, "config": config},
            "objectives": {"order": chosen["order"]},
            "train": {
                "max_steps": given.steps,
                "batch_size": 8,
                "learning_rate": 1e-3,
                "adam_beta2": 0.98,
                "threads": 1,
                "precision": "fp32",
                "seed": seed,
                "eval_steps": given.steps,
            },
        },
    )


def measure(change: dict[str, Any], seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Train once and score: the run's own objectives, and the order task in any case."""
    plan = make_plan(settings_of(change, seed, given))
    loss = PretrainingLoss(plan.settings.objectives, seed=seed)
    maker = plan.maker(plan.eval_index)
    evaluate = PretrainEvaluator(
        make_eval_batch(maker, plan.eval_chunks),
        PretrainingLoss(plan.settings.objectives, seed=seed, maker=maker),
        4096,
        Precision("fp32", "cpu"),
    )
    model = new_model(plan)
    begin = time.process_time()
    result = fit(model, plan.source(), plan.settings.train, step_loss=loss)
    scores = evaluate(model, StopRequest())
    assert scores is not None
    return {
        **BASE,
        **change,
        "seed": seed,
        "steps": result.step,
        "tokens": result.tokens_seen,
        "cpu_seconds": round(time.process_time() - begin),
        "parameters": parameter_count(plan.config, head="pretraining"),
        "metrics": scores.metrics,
    }


def run_all(given: argparse.Namespace) -> None:
    """Measure what is missing, one seed after the other, and save after each run."""
    wanted = [change for changes in CHANGES.values() for change in changes]
    unique = [change for i, change in enumerate(wanted) if change not in wanted[:i]]
    known: list[dict[str, Any]] = (
        json.loads(RESULTS.read_text())["runs"] if RESULTS.exists() else []
    )
    for seed in range(given.seeds):
        for change in unique:
            if any(r["seed"] == seed and r["steps"] == given.steps
                   and all(r[k] == v for k, v in (BASE | change).items()) for r in known):  # fmt: skip
                continue
            known.append(measure(change, seed, given))
            print(json.dumps(known[-1]), flush=True)
            content = {"environment": environment(), "hidden": HIDDEN, "runs": known}
            RESULTS.write_text(json.dumps(content, indent=1) + "\n")


def table(runs: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Return one row for each value of `key`, over seeds, the rest as in the base."""
    rows: list[dict[str, Any]] = []
    for change in CHANGES[key]:
        chosen = BASE | change
        found = [r for r in runs if all(r[k] == v for k, v in chosen.items())]
        if not found:
            continue
        names = {name for run in found for name in run["metrics"]}
        values = {n: [r["metrics"][n] for r in found if n in r["metrics"]] for n in sorted(names)}
        rows.append(
            {
                "value": chosen[key],
                "seeds": len(found),
                "parameters": found[0]["parameters"],
                **{n: (statistics.mean(v), max(v) - min(v)) for n, v in values.items()},
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", required=True)
    parser.add_argument("--eval-shards", required=True)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--start", default="official", help="official or word_vectors")
    given = parser.parse_args()
    torch.set_num_threads(1)
    run_all(given)


if __name__ == "__main__":
    main()
