"""The page of `benchmarks.serve`: docs/results/serving.md. `python -m benchmarks.serve_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "serve.json"
PAGE = ROOT / "docs" / "results" / "serving.md"
SERVERS = {
    "litebert": "litebert, int8",
    "onnx": "ONNX Runtime, int8, padded to the longest of a request",
    "onnx_padded_to_128": "ONNX Runtime, int8, all padded to 128",
    "transformers": "transformers pipeline",
}
GOAL = 4.0
"""Times the throughput of the better of the servers that one writes first."""
OVERLOAD_GOAL = 2.0
"""Most that p99 at four times the capacity may be of that at 80 %."""


def load_table(result: dict[str, Any]) -> list[str]:
    """Return the lines of the table of throughput and latency."""
    lines = [
        "| Clients x texts | Server | answers/s | p50, ms | p99, ms | processor ms an answer "
        "| litebert's answers/s to its |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for key, row in result.items():
        if not key.startswith("clients_"):
            continue
        _, clients, _, texts = key.split("_")
        for name, shown in SERVERS.items():
            if name not in row:
                continue
            got = row[name]
            ratio = row["throughput_ratios"].get(name)
            lines.append(
                f"| {clients} x {texts} | {shown} | {got['requests_per_second']:.1f} | {got['p50_ms']:,.0f} | "
                f"{got['p99_ms']:,.0f} | {got['processor_ms_per_request']:,.0f} | "
                f"{'' if ratio is None else f'{ratio:.2f}'} |"
            )
    return lines


def overload_table(result: dict[str, Any]) -> list[str]:
    """Return the lines of the table of what happens beyond capacity."""
    lines = [
        "| `max_queue_seconds` | p99 at 80 %, ms | p99 at 4 times, ms | ratio | answered, refused (429), other "
        "| next answer after, s | memory |",
        "|---|---:|---:|---:|---|---:|---:|",
    ]
    for row in result.get("overload", {}).values():
        statuses = row["at_4_times"]["statuses"]
        other = sum(count for status, count in statuses.items() if status not in ("200", "429"))
        lines.append(
            f"| {row['max_queue_seconds']:g} | {row['at_80_percent']['p99_ms']:,.0f} | "
            f"{row['at_4_times']['p99_ms']:,.0f} | {row['p99_ratio']:.1f} | {statuses.get('200', 0)}, "
            f"{statuses.get('429', 0)}, {other} | {row['recovery_seconds']:.2f} | {100 * row['memory_growth']:+.1f} % |"
        )
    return lines


def page(result: dict[str, Any]) -> str:
    """Return the Markdown page."""
    rows = {key: row for key, row in result.items() if key.startswith("clients_")}
    padded = [row["throughput_ratios"]["onnx_padded_to_128"] for row in rows.values()]
    plain = [row["throughput_ratios"]["onnx"] for row in rows.values()]
    short = [row["p99_ratio"] for row in result.get("overload", {}).values()]
    lines = [
        "# Serving beside the servers that one writes first",
        "",
        "albert-base with random weights, one process each, all on the loopback of one machine with "
        f"{result['cpus']} cores (load before: {result['load_average']:.1f}); servers in turns. Requests have the "
        "mix of lengths of sentences and messages (median 15 words, one in a hundred over 120).",
        "",
        *load_table(result),
        "",
        f"Wanted: {GOAL:g} times the better one's throughput. Beside a server that pads every text to 128 tokens, "
        f"as padding to a fixed length does, {min(padded):.1f} to {max(padded):.1f}. Beside one that pads a request to "
        f"its own longest text {min(plain):.2f} to {max(plain):.2f}: one text has no padding to save, a processor "
        "computes a token as quickly "
        "alone as in company, and what is left is the better graph ([inference](inference.md)). There the goal is "
        "**not reached**, and cannot be without a smaller model: `--depth` is that.",
        "",
        "## Beyond capacity",
        "",
        *overload_table(result),
        "",
        f"Wanted: at four times the capacity p99 of what is answered within {OVERLOAD_GOAL:g} times that at 80 %: "
        + ", ".join(f"{ratio:.1f}" for ratio in short)
        + ". The queue is a choice: a long one (the default) lets 64 clients who ask in turn be answered, "
        "a short one keeps every answer soon and tells the others at once to come back.",
        "",
        "What malformed requests, slow clients, killed engines, reloads and ends do is in "
        "[how to serve](../how-to/serve.md).",
        "",
        "Made by `python -m benchmarks.serve EXPORT --model FOLDER` and `python -m benchmarks.serve_page`.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(RESULT.read_text(encoding="utf-8"))), encoding="utf-8")
