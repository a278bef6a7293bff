"""What a distillation shows: its curves and its model card."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from litebert.recipes.figures import (
    FIRST,
    MUTED,
    SECOND,
    Figure,
    Plot,
    figure_style,
    log_scale,
    new_figure,
    render,
)
from litebert.recipes.markup import fence, inline

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["draw_curves", "render_card"]

COLOURS: Final = (FIRST, SECOND, MUTED, "#3b8f5a", "#8a4fbf")
SCORES: Final = "_spearman"


def draw_curves(summary: Mapping[str, Any]) -> dict[str, Plot]:
    """Draw the losses on held-out texts and the correlations over the run.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    with figure_style("distillation"):
        plot = render(_figure(summary))
    return {} if plot is None else {"curves": plot}


def _figure(summary: Mapping[str, Any]) -> Figure | None:
    train, evals = summary["curves"]["train"], summary["curves"]["eval"]
    if not evals["step"]:
        return None
    losses = [name for name in evals if name.endswith("_loss")]
    scores = [name for name in evals if name.endswith(SCORES)]
    figure = new_figure(7.2, 5.4 if scores else 3.0)
    rows = figure.subplots(2 if scores else 1, 1, sharex=True, squeeze=False)[:, 0]
    steps = [0, *evals["step"]]

    def values(name: str) -> list[float]:
        found = [summary["before"].get(name), *evals[name]]
        return [math.nan if value is None else value for value in found]

    for name, colour in zip(losses, COLOURS, strict=False):
        rows[0].plot(
            steps, values(name), marker="o", markersize=3, color=colour,
            label=name.removesuffix("_loss"),
        )  # fmt: skip
    log_scale(rows[0])
    rows[0].set_ylabel("loss on held-out texts")
    rows[0].legend(loc="best")
    for name, colour in zip(scores, COLOURS, strict=False):
        label = name.removesuffix(SCORES).replace("_", " ")
        rows[1].plot(steps, values(name), marker="o", markersize=3, color=colour, label=label)
        teacher = summary["teacher"].get(name)
        if teacher is not None:
            rows[1].axhline(teacher, color=colour, linestyle=":", linewidth=1.2)
    if scores:
        is_known = any(summary["teacher"].get(name) is not None for name in scores)
        rows[1].set_ylabel("Spearman" + " (dotted: teacher)" * is_known)
        rows[1].legend(loc="lower right")
    del train
    rows[-1].set_xlabel("optimizer step")
    return figure


def render_card(summary: Mapping[str, Any], name: str) -> str:
    """Return the model card in Markdown, YAML header first; numbers follow in its own section."""
    minutes = summary["seconds"] / 60
    rate = summary["tokens_seen"] / max(summary["seconds"], 1e-9)
    parts = [
        "---\nlicense: other\nlibrary_name: litebert\ntags: [albert, litebert, distillation]\n---",
        f"# {inline(name)}",
        "A student that learnt to answer as its teacher does:",
        fence("\n".join(summary["described"])),
        "## Training",
        f"{summary['steps']:,} steps, {summary['epochs']:.2f} passes over the texts, "
        f"{summary['tokens_seen']:,} tokens in {minutes:,.1f} minutes ({rate:,.0f} tokens/s). This "
        "command made it:",
        fence(summary["command"], "sh"),
        "Settings:",
        fence(summary["settings"], "toml"),
        "## Limits",
        "It repeats what teacher and texts hold, opinions and errors included, and knows best what "
        "is like those texts. The licence of the weights follows from both: state it here before "
        "you publish them.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
