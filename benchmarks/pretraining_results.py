"""Write docs/results/pretraining.md and its plots from the recorded runs.

    python -m benchmarks.pretraining_results [--add NAME=RUN_FOLDER ...]

`--add` copies the summary of a finished run of `litebert pretrain` to results/pretrain-NAME.json.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from benchmarks.pretraining_ablations import BASE, CHANGES, table
from litebert.recipes.figures import (
    FIRST,
    MUTED,
    SECOND,
    figure_style,
    new_figure,
    render,
    save_plots,
)
from litebert.recipes.pretrain.report import NAMES, draw_curves

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "pretraining.md"
PLOTS = PAGE.parent / "plots"
RUNS = {
    "small-en": "English: classic books and factbook, scored on WikiText-2",
    "small-de": "German: seven novels, scored on another one",
}
PAPER = {
    "order": "Paper (Table 5): without a question 79.0, NSP 79.2, SOP 80.1 (average of five tasks).",
    "sharing": "Paper (Table 4, E 128): all 80.1, attention only 81.7, FFN only 80.2, none 81.6.",
    "embedding": "Paper (Table 3, all shared): E 64 79.0, E 128 80.1, E 256 79.6, E 768 79.8.",
}
TITLES = {"order": "Order of sentences", "sharing": "Sharing", "embedding": "Embedding size"}


def add(text: str) -> None:
    """Copy the summary of a run, without paths of this machine."""
    name, _, folder = text.partition("=")
    summary = json.loads((Path(folder) / "summary.json").read_text())
    summary["name"] = name
    for key in ("settings", "command"):
        summary[key] = re.sub(r"(?<=[\"' ])/[^\"' ]*/", "", summary[key])
    (RESULTS / f"pretrain-{name}.json").write_text(json.dumps(summary, indent=1) + "\n")


def run_lines(name: str, title: str) -> list[str]:
    """Return the section of one recorded run."""
    path = RESULTS / f"pretrain-{name}.json"
    if not path.exists():
        return []
    found = json.loads(path.read_text())
    plots = draw_curves(found)
    save_plots({f"pretrain-{name}": plots["curves"]}, PLOTS)
    first = {key: values[0] for key, values in found["curves"]["eval"].items() if values}
    rows = [
        f"| {NAMES[key]} | {shown(key, first.get(key))} | **{shown(key, value)}** |"
        for key, value in found["metrics"].items()
        if key in NAMES
    ]
    text = found["text"]
    return [
        f"## {title}",
        "",
        f"{found['parameters'] / 1e6:.2f} M parameters; {text['documents']:,} documents, "
        f"{text['tokens']:,} tokens of text. {found['steps']:,} steps, "
        f"{found['tokens_seen'] / 1e6:.1f} M tokens ({found['epochs']:.2f} passes) in "
        f"{found['seconds'] / 60:.0f} minutes on one thread of a busy machine. "
        f"Settings: `configs/pretrain/{name}.toml`; every number: "
        f"`benchmarks/results/pretrain-{name}.json`.",
        "",
        f"On {found['held_out']['examples']:,} held-out examples:",
        "",
        f"| measure | after {first.get('step', 0):,} steps | at the end |",
        "|---|---|---|",
        *rows,
        "",
        f"![curves](plots/pretrain-{name}.png)",
        "",
    ]


def shown(key: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{100 * value:.1f} %" if key.endswith("accuracy") else f"{value:,.3f}"


def finetune_lines() -> list[str]:
    """Return the section on fine-tuning with and without pretraining."""
    path = RESULTS / "pretraining-finetune.json"
    if not path.exists():
        return []
    tasks = json.loads(path.read_text())["tasks"]
    lines = [
        "## Is it worth it? Fine-tuning with and without",
        "",
        "The same shape, vocabulary size, epochs and number of seeds. From scratch is what `litebert train` does",
        "without a model (own vocabulary and word vectors from the training texts, a start near the",
        "identity, its own learning rate); pretrained is the English encoder above. Median of the seeds, and their",
        "spread in brackets.",
        "",
        "| Task | Score | Majority | TF-IDF | From scratch | Pretrained | |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, starts in tasks.items():
        if {"pretrained", "scratch"} - set(starts):
            continue
        ours, scratch = starts["pretrained"], starts["scratch"]
        verdict = "better" if ours["median"] > scratch["median"] else "**not better**"
        lines.append(
            f"| {name} | {ours['metric']} | {ours['majority']:.3f} | {ours['tfidf']:.3f} "
            f"| {scratch['median']:.3f} ({scratch['spread']:.3f}) "
            f"| **{ours['median']:.3f}** ({ours['spread']:.3f}) | {verdict} |"
        )
    lines += [
        "",
        "Both sides begin with the attention head that finds equal tokens where the task has pairs",
        "(`docs/log.md`). On MRPC the majority column is the F1 of answering always yes, and the lead is",
        "smaller than the noise of 408 pairs: what a model of this size knows of paraphrases is little.",
    ]
    return [*lines, "", "Two or three seeds each; epochs, rates, steps and seconds are in "
            "`benchmarks/results/pretraining-finetune.json`.", ""]  # fmt: skip


START = 'vectors of co-occurring pieces (`model.start = "word_vectors"`)'


def ablation_lines() -> list[str]:
    """Return the section on the paper's ablations in miniature."""
    path = RESULTS / "pretraining-ablations.json"
    if not path.exists():
        return []
    runs = json.loads(path.read_text())["runs"]
    tables = {key: table(runs, key) for key in CHANGES}
    save_plots(_ablation_plot(tables), PLOTS)
    steps, tokens = runs[0]["steps"], sum(r["tokens"] for r in runs) / len(runs)
    seeds = min(row["seeds"] for rows in tables.values() for row in rows)
    lines = [
        "## The paper's ablations in miniature",
        "",
        f"4 depths of width 128, {steps} steps ({tokens / 1e6:.2f} M tokens) each from {START}, one "
        f"change at a time from {BASE['order'].upper()}, everything shared, E {BASE['embedding']}. Scores on "
        f"WikiText-2; {seeds} seed(s), mean and in brackets the distance between seeds. The paper's numbers are "
        "averages of fine-tuned tasks after 125,000 steps of 4,096 examples.",
        "",
        "**Read with care.** The runs are past the plateau of word frequencies (6.5), but the two seeds, which also "
        "hide other tokens of the held-out text, differ by about 0.1, and most rows of a table by less. What holds for "
        "both seeds: without an order question the masked tokens are learnt best; an embedding of 32 is worse than "
        "one of 64, while 128 gains nothing more (Table 3: E 64 to 128 little); a segment of another document (NSP) "
        "is told at once, which of two comes first (SOP) hardly, as the paper argues. On sharing, the first seed has "
        "the order of Table 4 (nothing shared best, then attention, then everything, FFN last), the second has not: "
        "differences of the paper's size would need far more tokens to show.",
        "",
    ]
    for key, rows in tables.items():
        lines += [
            f"**{TITLES[key]}.** {PAPER[key]}",
            "",
            f"| {key} | parameters | masked-token loss | masked tokens right | order question right |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {row['value']} | {row['parameters'] / 1e6:.2f} M | {pair(row, 'mlm_loss')} "
            f"| {pair(row, 'mlm_accuracy')} "
            f"| {pair(row, 'sop_accuracy') or pair(row, 'nsp_accuracy')} |"
            for row in rows
        ]
        lines.append("")
    return [*lines, "![ablations](plots/pretraining-ablations.png)", ""]


def pair(row: dict[str, Any], key: str) -> str:
    if key not in row:
        return ""
    mean, distance = row[key]
    if row["seeds"] == 1:
        return f"{100 * mean:.1f} %" if key.endswith("accuracy") else f"{mean:.3f}"
    if key.endswith("accuracy"):
        return f"{100 * mean:.1f} % ({100 * distance:.1f})"
    return f"{mean:.3f} ({distance:.3f})"


def _ablation_plot(tables: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    with figure_style("ablations"):
        figure = new_figure(7.2, 2.8)
        panels = figure.subplots(1, len(tables), sharey=True)
        for axes, (key, rows), colour in zip(
            panels, tables.items(), (FIRST, SECOND, MUTED), strict=True
        ):
            names = [str(row["value"]).replace("_", "\n") for row in rows]
            means = [row["mlm_loss"][0] for row in rows]
            errors = [row["mlm_loss"][1] / 2 for row in rows]
            axes.errorbar(range(len(rows)), means, yerr=errors, fmt="o", color=colour, capsize=4)
            axes.set_xticks(range(len(rows)), names, fontsize=8)
            axes.set_xlim(-0.5, len(rows) - 0.5)
            axes.set_title(TITLES[key], fontsize=10)
        panels[0].set_ylabel("held-out masked-token loss")
        plot = render(figure)
    return {} if plot is None else {"pretraining-ablations": plot}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--add", action="append", default=[], metavar="NAME=RUN_FOLDER")
    for text in parser.parse_args().add:
        add(text)
    lines = [
        "# Pretraining: what was measured",
        "",
        "Written by `python -m benchmarks.pretraining_results` from the JSON files it names. These are runs of",
        "minutes on one core, with a ten-thousandth of the paper's tokens or less: they show that the whole path",
        "works and which way things go, not what the method can do.",
        "",
    ]
    for name, title in RUNS.items():
        lines += run_lines(name, title)
    lines += finetune_lines() + ablation_lines()
    PAGE.write_text("\n".join(lines).rstrip() + "\n")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
