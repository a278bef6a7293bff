"""Write the documentation page from benchmarks/results/speed.json: python -m benchmarks.speed_page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "speed.json"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "speed.md"


def mark(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def shape_lines(shape: str, found: dict[str, Any], met: dict[str, bool]) -> list[str]:
    train, predict, memory = found["train"], found["predict"], found["memory"]
    lines = [
        f"## {'ALBERT-base (12 x 768)' if shape == 'base' else 'Small (6 x 384)'}",
        "",
        "| What | litebert | transformers, padded | Ratio | Target | |",
        "|---|---|---|---|---|---|",
        f"| training, real tokens/s | {train['ours_tokens_per_second']:,.0f} "
        f"| {train['theirs_tokens_per_second']:,.0f} | {train['speedup']:.2f}x | 2.2x "
        f"| {mark(met['train_speedup'])} |",
        f"| predicting, real tokens/s | {predict['ours_tokens_per_second']:,.0f} "
        f"| {predict['theirs_tokens_per_second']:,.0f} | {predict['speedup']:.2f}x | 2.5x "
        f"| {mark(met['predict_speedup'])} |",
        f"| peak memory of training, MB | {memory['ours_peak_bytes'] / 1e6:,.0f} "
        f"| {memory['theirs_peak_bytes'] / 1e6:,.0f} "
        f"| {memory['ratio']:.2f} | 0.7 | {mark(met['memory_ratio'])} |",
    ]
    for tokens, row in found["latency_batch_1"].items():
        lines.append(
            f"| one text of {tokens} tokens, ms | {row['ours_ms']:.1f} | {row['theirs_ms']:.1f} "
            f"| {row['ratio']:.2f} | 1.0 | {mark(row['ratio'] <= 1.0)} |"
        )
    lines += [
        "",
        f"Training reaches {train['ours_gflops']:.0f} GFLOP/s of useful matrix products, "
        f"{train['of_peak']:.0%} of the {train['peak_gflops']:.0f} GFLOP/s that a large matrix "
        "product reached in the same minute"
        + (f" (target 80 %: {mark(met['train_of_peak'])})." if shape == "base" else "."),
        "",
    ]
    return lines


def main() -> None:
    report = json.loads(RESULTS.read_text(encoding="utf-8"))
    facts = report["machine"]
    lines = [
        "# Speed and memory",
        "",
        "Beside transformers in one process, taking turns, medians; weights and outputs are the same on",
        "both sides. Batches of 32 texts with lengths lognormal(3.2, 0.6) cut to 5..128 tokens, which",
        "transformers pads to the longest of the batch. Memory is the peak of a process of its own.",
        "",
        f"Machine: {facts['cpu']}, {facts['threads']} threads, torch {facts['torch']}, "
        f"transformers {facts['transformers']}; load before {facts['load_before']:.1f}, after "
        f"{facts['load_after']:.1f}. Ratios carry over to similar machines, times do not.",
        "Reproduce with `make bench`; the numbers are in `benchmarks/results/speed.json`.",
        "",
    ]
    for shape, found in report["results"].items():
        lines += shape_lines(shape, found, report["met"][shape])
    padded = report["results"]["base"]["padded_per_real_token"]
    lines += [
        f"Most of the gain is padding that is not computed: {padded:.1f} padded positions for each real",
        "token at this mix. The rest is one product for query, key and value, attention by sequence",
        "without masks, and fewer passes over memory.",
    ]
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
