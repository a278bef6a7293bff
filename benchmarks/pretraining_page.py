"""Write the page from benchmarks/results/pretraining-speed.json: python -m benchmarks.pretraining_page."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.pretraining_speed import BASE, RESULTS

PAGE = Path(__file__).parent.parent / "docs" / "results" / "pretraining-speed.md"
TABLES = {"mixed": "lengths as they come", "full": "all sequences full"}
SIDES = {
    "ours": "litebert",
    "theirs": "transformers",
    "ours unshared": "litebert, no sharing",
}


def mark(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def shape_lines(
    name: str, found: dict[str, Any], met: dict[str, bool], targets: dict[str, Any]
) -> list[str]:
    lines = [
        f"## {found['title']}",
        "",
        "| What | litebert | transformers | Ratio | Target | |",
        "|---|---|---|---|---|---|",
    ]
    for table, title in TABLES.items():
        row = found[table]
        lines.append(
            f"| real tokens/s, {title} | {row['ours_tokens_per_second']:,.0f} "
            f"| {row['theirs_tokens_per_second']:,.0f} | {row['speedup']:.2f}x "
            f"| {targets['speedup'][name]}x | {mark(met[f'speedup_{table}'])} |"
        )
    memory, aim = found["memory"], targets["memory_ratio"]
    for key, ratio, verdict, title in (
        ("peak_bytes", "ratio", "memory_ratio", "peak memory of the process, MB"),
        ("growth_bytes", "growth_ratio", "growth_ratio", "the same without imports, MB"),
    ):
        ours, theirs = (memory["sides"][side][key] / 1e6 for side in ("ours", "theirs"))
        lines.append(
            f"| {title} | {ours:,.0f} | {theirs:,.0f} | {memory[ratio]:.2f} | {aim} "
            f"| {mark(met[verdict])} |"
        )
    costs = found["costs"]
    lines += [
        f"| making batches, ms and share of the step | {1e3 * costs['data_seconds']:.1f} | "
        f"| {costs['data_share']:.2%} | {targets['data_share']:.0%} | {mark(met['data_share'])} |",
        f"| saving a state, ms and share at one in {costs['save_interval_seconds']:.0f} s "
        f"| {1e3 * costs['save_seconds']:.0f} | | {costs['save_share']:.2%} "
        f"| {targets['save_share']:.0%} | {mark(met['save_share'])} |",
        f"| difference of the first losses | | | {found['loss_difference']:.0e} "
        f"| {targets['loss_difference']:.0e} | {mark(met['loss_difference'])} |",
        "",
    ]
    mixed = found["mixed"]
    lines += [
        f"Sequences as they come have {mixed['mean_length']:.0f} tokens on average, of which "
        f"{mixed['masked_share']:.1%} are predicted;",
        f"padded to the longest of the batch, {mixed['padded_per_real_token']:.2f} places are "
        "computed for each real token.",
    ]
    for table, title in TABLES.items():
        row = found[table]
        goal = f" (target 80 %: {mark(met[f'of_peak_{table}'])})" if name == BASE else ""
        lines.append(
            f"With {title}, {row['ours_gflops']:.0f} GFLOP/s of useful products are "
            f"{row['of_peak']:.0%} of the {row['peak_gflops']:.0f} that a large product reached "
            f"in the same minute{goal}."
        )
    return [*lines, "", *update_lines(costs)]


def update_lines(costs: dict[str, Any]) -> list[str]:
    sizes = list(costs["update_share"]["adamw"])
    head = [f"share of a step of {int(size):,} tokens" for size in sizes]
    lines = [
        f"| Optimizer | update, ms | {' | '.join(head)} |",
        "|---" * (2 + len(sizes)) + "|",
    ]
    for name, taken in costs["update_seconds"].items():
        shares = " | ".join(f"{costs['update_share'][name][size]:.1%}" for size in sizes)
        lines.append(f"| {name} | {1e3 * taken:.0f} | {shares} |")
    return [*lines, ""]


def sharing_lines(found: dict[str, Any]) -> list[str]:
    reduce, sides = found["all_reduce"], found["memory"]["sides"]
    lines = [
        "## What sharing saves",
        "",
        f"{found['title']} beside a model of the same depth and width with weights of its own at "
        f"every depth: {reduce['ratio']:.1f} times",
        f"fewer bytes travel between processes in each step. Measured: {reduce['processes']} "
        "processes on this machine, gloo, one thread each.",
        "",
        "| | gradients, MB | all-reduce, ms | peak memory, MB |",
        "|---|---|---|---|",
    ]
    for name, side in (("shared", "ours"), ("unshared", "ours unshared")):
        measured = reduce["measured"][name]
        lines.append(
            f"| {name} | {measured['bytes'] / 1e6:,.1f} | {1e3 * measured['seconds']:,.0f} "
            f"| {sides[side]['peak_bytes'] / 1e6:,.0f} |"
        )
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    report = json.loads(options.results.read_text(encoding="utf-8"))
    facts, results = report["machine"], report["results"]
    lines = [
        "# Speed and memory of pretraining",
        "",
        "A step of `litebert pretrain` (packed tokens, logits at masked places only) beside",
        "`AlbertForPreTraining` (padded batches, logits at every place) in one process, taking turns,",
        "medians; AdamW, float32, the same weights, examples and losses. Memory is the peak of a process",
        "of its own, after two steps on full sequences.",
        "",
        f"Machine: {facts['cpu']}, {facts['threads']} threads, torch {facts['torch']}, "
        f"transformers {facts['transformers']}; load before {facts['load_before']:.1f}, after "
        f"{facts['load_after']:.1f}; {report['seconds'] / 60:.0f} minutes. Ratios carry over to "
        "similar machines, times do not.",
        "Reproduce with `make bench-pretraining`; the numbers are in",
        "`benchmarks/results/pretraining-speed.json`.",
        "",
    ]
    for name, found in results.items():
        lines += shape_lines(name, found, report["met"][name], report["targets"])
    if BASE in results:
        lines += sharing_lines(results[BASE])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
