"""The page of `benchmarks.inference`: the table, and each bar with what was reached."""

from __future__ import annotations

from typing import Any

__all__ = ["bars", "page"]

OURS = "litebert int8"
LATENCY_BARS = {"16": 0.5, "64": 0.75, "128": 0.8, "384": 0.85}
"""Length -> most that our latency may be of the best peer's."""
MIX_BARS = {"mix_padded_per_second": 3.2, "mix_sorted_per_second": 1.8}
"""Key -> least that our sentences a second must be of the best peer's."""
RSS_BAR = 110.0
START_BAR = 0.6


def bars(result: dict[str, Any]) -> list[tuple[str, float, str, float | None, bool]]:
    """Return (what, reached, relation, bar, whether it holds) of everything that was measured."""
    rows: dict[str, dict[str, Any]] = result["rows"]
    if OURS not in rows:
        return []
    ours = rows[OURS]
    peers = {name: row for name, row in rows.items() if not name.startswith("litebert")}
    found: list[tuple[str, float, str, float | None, bool]] = []
    for length, bar in LATENCY_BARS.items():
        theirs = [row[f"ms_{length}"] for row in peers.values() if f"ms_{length}" in row]
        if theirs and f"ms_{length}" in ours:
            share = ours[f"ms_{length}"] / min(theirs)
            found.append(
                (f"1 x {length}, share of the best peer's time", share, "<=", bar, share <= bar)
            )
    for key, bar in MIX_BARS.items():
        theirs = [row[key] for row in peers.values() if key in row]
        if theirs and key in ours:
            # Ours packs: whether its peers sort does not matter to it.
            times = max(ours[k] for k in MIX_BARS if k in ours) / max(theirs)
            what = "padded" if "padded" in key else "sorted by length"
            found.append(
                (f"sentences a second, times the best peer {what}", times, ">=", bar, times >= bar)
            )
    for key, what in (
        ("rss_mb_first", "after the first answer"),
        ("rss_mb_128", "after 128 tokens"),
        ("peak_rss_mb", "at most, everything done"),
    ):
        if ours.get(key) is not None:
            found.append((f"RSS {what}, MB", ours[key], "<=", RSS_BAR, ours[key] <= RSS_BAR))
    found.append(
        (
            "process start to first answer, s",
            ours["start_seconds"],
            "<=",
            START_BAR,
            ours["start_seconds"] <= START_BAR,
        )
    )
    return found


def page(result: dict[str, Any]) -> str:
    """Return the page in Markdown."""
    lengths = [str(n) for n in result["lengths"]]
    machine = result["machine"]
    head = ["", *(f"1 x {n}, ms" for n in lengths), "sentences/s, sorted", "sentences/s, padded",
            "RSS first / most, MB", "start, s", "file, MB"]  # fmt: skip
    lines = [
        "# Inference beside other runtimes",
        "",
        "albert-base with random weights, the same for all; each back-end in a process of its own, in "
        "turns, medians. litebert packs several sentences into a row, the others pad batches of 16, "
        "sorted by length or as they come.",
        "",
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {result['threads']} threads, load before "
        f"{machine['load_before']:.1f}; torch {machine['torch']}, transformers {machine['transformers']}; "
        f"one large product runs at {result['gemm_gflops']:.0f} GFLOP/s. Mix: "
        f"{result['mix']['sentences']} sentences, {result['mix']['tokens']:,} tokens.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]  # fmt: skip
    for name, row in result["rows"].items():
        cells = [name, *(_number(row.get(f"ms_{n}"), 1) for n in lengths)]
        cells += [_number(row.get(f"mix_{how}_per_second"), 1) for how in ("sorted", "padded")]
        cells.append(
            f"{_number(row.get('rss_mb_first'), 0)} / {_number(row.get('peak_rss_mb'), 0)}"
        )
        cells += [_number(row.get("start_seconds"), 2), _number(row.get("file_mb"), 1)]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| Bar | reached | wanted | holds |", "|---|---|---|---|"]
    for what, value, relation, bar, holds in bars(result):
        lines.append(
            f"| {what} | {value:.2f} | {relation} {bar} | {'yes' if holds else '**no**'} |"
        )
    if result["left_out"]:
        lines += ["", "Not measured:", ""]
        lines += [f"- {name}: {reason}" for name, reason in result["left_out"].items()]
    return "\n".join([*lines, "", "Made by `python -m benchmarks.inference`.", ""])


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
