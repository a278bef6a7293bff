"""The page of `benchmarks.tasks`: scores by group, what int8 costs, and speed."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

__all__ = ["page"]

ENCODERS = {
    "distilled-small-en": "5.9 M parameters, folded and distilled from a sentence encoder by "
    "`make flagship` (settings: `configs/distill/small-en.toml`); see "
    "[the packaged encoder](../how-to/packaged-encoder.md)",
    "pretrained-small-en": "1.35 M parameters, 35 minutes of masked words and sentence order on books "
    "(`configs/pretrain/small-en.toml`); see [pretraining](pretraining.md)",
}
"""Name of a folder that was trained from -> what it is."""


def page(rows: dict[str, Any], results: Path) -> str:
    """Return the Markdown page.

    Args:
        rows: by name, as `benchmarks.tasks` measured them.
        results: folder with what was measured of speed.
    """
    lines = [
        "# Tasks, measured",
        "",
        "Each task was trained once, with the default settings, on one thread of a machine with other work. It shows",
        "that each path works on the real files, and what minutes of training give, not what can be reached. A score",
        "below a simple answer is left as it is: then that is the better choice. int8 is the exported model through",
        "onnxruntime, fp32 the same without rounding, in points of a hundred, on at most 150,000 tokens. Hardly",
        "trained models answer near the borders, so there the difference is chance either way. What was started from:",
        "",
        *(f"- {name}: {told}." for name, told in ENCODERS.items()),
        "- scratch: nothing learnt before; tasks in other languages.",
        "",
        "Written by `python -m benchmarks.tasks --data ../shared/data --model FOLDER --model-for GROUP=FOLDER`, with",
        "`--only` and `--seconds` for single rows; all scores, steps and times are in `benchmarks/results/tasks.json`.",
    ]
    for group in dict.fromkeys(row["group"] for row in rows.values()):
        lines += [
            "",
            f"## {group}",
            "",
            "| Task | Score | Reached | Simple answers | Started from | Trained on | Minutes | Updates | int8 - fp32 |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for name, row in rows.items():
            if row["group"] != group:
                continue
            simple = ", ".join(f"{b} {value:.3f}" for b, value in row["baselines"].items())
            updates = statistics.median(row["steps"])
            lines.append(
                f"| {name} | {row['metric']} | {row['median']:.3f} | {simple} | "
                f"{row['encoder']} | {row['train_examples']:,} | "
                f"{row['budget'] / 60:g} | {updates:,.0f} | {_loss(row):+.2f} |"
            )
    warned = [(name, row["faults"]) for name, row in rows.items() if row["faults"]]
    if warned:
        lines += ["", "## What the guard said", ""]
        lines += [f"- {name}: {' '.join(faults)}" for name, faults in warned]
    return "\n".join([*lines, *speed_lines(results)]) + "\n"


def speed_lines(results: Path) -> list[str]:
    """Return what `benchmarks.qa_speed` and `benchmarks.ner_speed` found."""
    answers, tags = (
        json.loads((results / f"tasks-{name}-speed.json").read_text()) for name in ("qa", "ner")
    )
    found = answers["256x4"]
    lines = [
        "",
        "## Speed beside transformers",
        "",
        f"Answers to {found['questions']} questions on {found['passages']} passages, from text to text, one thread;",
        "windows of 384 tokens, the same weights (`python -m benchmarks.qa_speed`):",
        "",
        "| litebert | times as fast, padded as documented | padded to the longest of a batch | same answers |",
        "|---|---|---|---|",
    ]
    for name, label in (("torch", "torch"), ("fp32", "exported, fp32"), ("int8", "exported, int8")):
        row = found[name]
        lines.append(
            f"| {label} | {row['speedup_documented']:.1f} | {row['speedup_longest']:.1f} | "
            f"{row['same_answers']} of {found['questions']} |"
        )
    words = tags["predictions"]
    return [
        *lines,
        "",
        f"Tags of {tags['sentences']} sentences, in torch beside the pipeline (`python -m benchmarks.ner_speed`): "
        f"{tags['speedup']:.1f} times as fast,",
        f"{words['words'] - words['different']:,} of {words['words']:,} words the same.",
    ]


def _loss(row: dict[str, Any]) -> float:
    """Points of a hundred that int8 gives more than fp32."""
    exported = row["exported"]
    return 100 * (exported["int8"]["score"] - exported["fp32"]["score"])
