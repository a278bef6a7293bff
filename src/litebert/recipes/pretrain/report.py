"""What a finished pretraining run shows: summary, curves, model card, and the lines of the end."""

from __future__ import annotations

import datetime as dt
import json
import math
import shlex
from typing import TYPE_CHECKING, Any, Final

from litebert import __version__
from litebert.model.counting import parameter_count, unshared_parameter_count
from litebert.recipes.figures import (
    FIRST,
    MUTED,
    SECOND,
    Axes,
    Figure,
    Plot,
    figure_style,
    new_figure,
    render,
)
from litebert.recipes.markup import fence, inline
from litebert.recipes.run_folder import environment
from litebert.settings import dump_toml

if TYPE_CHECKING:
    from litebert.recipes.pretrain.run import PretrainOutcome
    from litebert.recipes.run_folder import RunFolder

__all__ = ["draw_curves", "render_card", "result_lines", "summarize"]

NAMES: Final = {
    "mlm_loss": "masked-token loss (nats)",
    "mlm_accuracy": "masked tokens right",
    "mlm_perplexity": "perplexity of a masked token",
    "word_accuracy": "masked words right",
    "word_perplexity": "perplexity of a masked word",
    "sop_accuracy": "sentence order right",
    "sop_loss": "sentence-order loss (nats)",
    "nsp_accuracy": "next sentence right",
    "nsp_loss": "next-sentence loss (nats)",
    "rtd_accuracy": "replaced tokens told apart",
    "rtd_loss": "replaced-token loss (nats)",
}
"""What a person calls each number."""
_SHARES: Final = "accuracy"


def summarize(outcome: PretrainOutcome, folder: RunFolder, command: str) -> dict[str, Any]:
    """Return the content of `summary.json`."""
    plan, result = outcome.plan, outcome.result
    lines = _metric_lines(folder)
    train = [line for line in lines if line["kind"] == "train"]
    evals = [line for line in lines if line["kind"] == "eval"]
    terms = sorted({name for line in train for name in line.get("terms", {})})
    return {
        "format_version": 1,
        "kind": "pretraining",
        "name": folder.path.name,
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "litebert_version": __version__,
        "command": command,
        "settings": dump_toml(plan.settings),
        "parameters": parameter_count(plan.config, head=plan.head),
        "unshared_parameters": unshared_parameter_count(plan.config, head=plan.head),
        "text": {
            "documents": plan.shards.num_documents,
            "tokens": plan.shards.num_tokens,
            "examples": len(plan.train_chunks),
            "sha256": plan.shards.fingerprint,
        },
        "held_out": {
            "examples": len(plan.eval_chunks),
            "is_other_text": plan.eval_shards is not plan.shards,
            "sha256": plan.eval_shards.fingerprint,
        },
        "status": result.status,
        "steps": result.step,
        "epochs": result.epoch,
        "tokens_seen": result.tokens_seen,
        "seconds": result.seconds,
        "tokens_per_second": result.tokens_seen / max(result.seconds, 1e-9),
        "skipped_steps": result.skipped_steps,
        "rollbacks": result.rollbacks,
        "metrics": result.last_metrics,
        "curves": {
            "train": {
                "step": [line["step"] for line in train],
                "loss": [_number(line["loss"]) for line in train],
                "learning_rate": [line["learning_rate"] for line in train],
                "tokens_seen": [line["tokens_seen"] for line in train],
                **{t: [line.get("terms", {}).get(t) for line in train] for t in terms},
            },
            "eval": {
                "step": [line["step"] for line in evals],
                **{
                    name: [line["metrics"].get(name) for line in evals]
                    for name in sorted({name for line in evals for name in line["metrics"]})
                },
            },
        },
        "environment": environment(),
    }


def draw_curves(summary: dict[str, Any]) -> dict[str, Plot]:
    """Draw the training loss with the learning rate, and the held-out scores.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    with figure_style("pretraining"):
        plot = render(_curves(summary))
    return {} if plot is None else {"curves": plot}


def _curves(summary: dict[str, Any]) -> Figure | None:
    train, evals = summary["curves"]["train"], summary["curves"]["eval"]
    shares = [name for name in evals if name.endswith(_SHARES)]
    has_loss = bool(evals["step"]) and "mlm_loss" in evals
    if not train["step"] and not evals["step"]:
        return None
    figure = new_figure(7.2, 5.4 if shares else 3.0)
    rows = figure.subplots(2 if shares else 1, 1, sharex=True, squeeze=False)[:, 0]
    _draw_losses(rows[0], train, evals if has_loss else None)
    if shares:
        for name, colour in zip(shares, (FIRST, SECOND, MUTED, "#3b8f5a"), strict=False):
            values = [math.nan if value is None else 100 * value for value in evals[name]]
            rows[1].plot(
                evals["step"], values, marker="o", markersize=3, color=colour,
                label=NAMES.get(name, name),
            )  # fmt: skip
        rows[1].set_ylabel("held-out text (%)")
        rows[1].legend(loc="best")
    rows[-1].set_xlabel("optimizer step")
    return figure


def _draw_losses(axes: Axes, train: dict[str, Any], evals: dict[str, Any] | None) -> None:
    key = "mlm" if "mlm" in train else "loss"
    values = [math.nan if value is None else value for value in train[key]]
    label = "masked-token loss, training" if key == "mlm" else "training loss"
    axes.plot(train["step"], values, color=FIRST, linewidth=1, alpha=0.6, label=label)
    if evals is not None:
        axes.plot(
            evals["step"], evals["mlm_loss"], color=FIRST, marker="o", markersize=3,
            label="masked-token loss, held out",
        )  # fmt: skip
    axes.set_ylabel("loss (nats)")
    other = axes.twinx()
    other.plot(train["step"], train["learning_rate"], color=SECOND, linewidth=1.2, linestyle="--")
    other.set_ylabel("learning rate (dashed)")
    other.set_ylim(bottom=0)
    other.grid(visible=False)
    other.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    axes.legend(loc="upper right")


def render_card(summary: dict[str, Any]) -> str:
    """Return the model card in Markdown, YAML header first."""
    text, held = summary["text"], summary["held_out"]
    rows = [
        f"| {NAMES[name]} | {_shown(name, value)} |"
        for name, value in summary["metrics"].items()
        if name in NAMES
    ]
    where = (
        "text that was not trained on"
        if held["is_other_text"]
        else "examples that were not trained on, of documents that were"
    )
    parts = [
        "---\nlicense: other\nlibrary_name: transformers\npipeline_tag: fill-mask\n"
        "tags: [albert, litebert]\n---",
        f"# {inline(summary['name'])}",
        f"A text encoder with {summary['parameters'] / 1e6:.2f} M parameters "
        f"({summary['unshared_parameters'] / 1e6:.2f} M without sharing), pretrained from "
        f"{text['documents']:,} documents ({text['tokens']:,} tokens). It knows no task yet: "
        "fine-tune it.",
        "## Score",
        f"On {held['examples']:,} {where}:",
        "\n".join(["| measure | value |", "|---|---|", *rows]),
        "![curves](plots/curves.png)" if rows else "",
        "## Use",
        fence("litebert train your-table.csv --model path/to/this/folder", "sh"),
        "## Training",
        f"{summary['steps']:,} steps, {summary['epochs']:.2f} passes over the text, "
        f"{summary['tokens_seen']:,} tokens in {summary['seconds'] / 60:.1f} minutes "
        f"({summary['tokens_per_second']:,.0f} tokens/s). This command made the model:",
        fence(summary["command"], "sh"),
        "Settings:",
        fence(summary["settings"], "toml"),
        "## Limits",
        "The model repeats what its text holds, opinions and errors included. The licence of the "
        "weights follows from that text: state it here before you publish them.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def result_lines(summary: dict[str, Any], folder: RunFolder) -> list[str]:
    """Return what a person reads at the end."""
    known = [(NAMES[n], _shown(n, v)) for n, v in summary["metrics"].items() if n in NAMES]
    width = max((len(name) for name, _ in known), default=0)
    model = shlex.quote(str(folder.path))
    return [
        "",
        f"on {summary['held_out']['examples']:,} held-out examples",
        *(f"  {name:<{width}}  {value}" for name, value in known),
        "",
        f"model     {folder.last}",
        f"plots     {folder.plots}",
        f"next      litebert train your-table.csv --model {model}",
    ]


def _metric_lines(folder: RunFolder) -> list[dict[str, Any]]:
    path = folder.path / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _shown(name: str, value: float) -> str:
    return f"{100 * value:.1f} %" if name.endswith(_SHARES) else f"{value:,.3f}"


def _number(value: float | str) -> float | None:
    return value if isinstance(value, int | float) else None
