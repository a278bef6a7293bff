"""Figures of a fine-tuning run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.recipes.figures import (
    FIRST,
    INK,
    MUTED,
    SECOND,
    Axes,
    Figure,
    Plot,
    figure_style,
    new_figure,
    render,
)
from litebert.recipes.verdict import BASELINE_NAMES, format_score, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from litebert.recipes.summary import RunSummary

__all__ = ["PLOTS", "draw_plots"]

ANNOTATED_CLASSES: Final = 12
"""Up to this many classes the confusion matrix shows its counts."""
NAMED_CLASSES: Final = 40
"""Up to this many classes the confusion matrix names them on its axes."""
NAME_LENGTH: Final = 22
MAX_BARS: Final = 60
MIN_SMOOTHED: Final = 60
"""From this many points on, the loss gets a smoothed line."""


def draw_plots(summary: RunSummary, names: Iterable[str] | None = None) -> dict[str, Plot]:
    """Draw every figure that the run has data for, or those of `names` (keys of `PLOTS`).

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    plots: dict[str, Plot] = {}
    for name in PLOTS if names is None else names:
        with figure_style(name):
            plot = render(PLOTS[name](summary))
            if plot is not None:
                plots[name] = plot
    return plots


def draw_curves(summary: RunSummary) -> Figure | None:
    """Training loss and learning rate above, evaluation scores below."""
    scores = {name: curve for name, curve in summary.eval_scores.items() if curve.steps}
    if not summary.loss.steps and not scores:
        return None
    figure = new_figure(7.2, 4.8 if scores else 2.8)
    rows = figure.subplots(2 if scores else 1, 1, sharex=True, squeeze=False)[:, 0]
    _draw_loss(rows[0], summary)
    if scores:
        _draw_scores(rows[1], summary)
    for axes in rows:
        if summary.best_step is not None:
            axes.axvline(summary.best_step, color=MUTED, linestyle=":", linewidth=1)
    rows[-1].set_xlabel("optimizer step (dotted: the kept model)" if summary.best_step is not None
                        else "optimizer step")  # fmt: skip
    return figure


def draw_confusion(summary: RunSummary) -> Figure | None:
    """Share of each true class (row) that got each answer (column)."""
    counts = np.array(summary.confusion, dtype=np.float64)
    if counts.size == 0:
        return None
    size = len(counts)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    is_named = size <= NAMED_CLASSES
    side = float(np.clip(2.6 + 0.34 * size, 3.6, 9.0)) if is_named else 7.0
    figure = new_figure(side + (1.4 if is_named else 1.0), side)
    axes = figure.subplots()
    # The square root makes single mistakes visible beside a full diagonal.
    image = axes.imshow(share, cmap=_blues(), norm=_root(), interpolation="nearest")
    axes.grid(visible=False)
    axes.set_xlabel("answer")
    axes.set_ylabel("true class")
    if is_named:
        names = [_short(label) for label in summary.labels]
        axes.set_xticks(range(size), names, rotation=45 if size > 3 else 0,
                        ha="right" if size > 3 else "center")  # fmt: skip
        axes.set_yticks(range(size), names)
    if size <= ANNOTATED_CLASSES:
        for row, column in np.ndindex(size, size):
            axes.text(column, row, f"{counts[row, column]:,.0f}", ha="center", va="center",
                      fontsize=8, color="white" if share[row, column] > 0.35 else "#101828")  # fmt: skip
    bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    bar.outline.set_visible(False)
    bar.set_label("share of the true class")
    return figure


def draw_reliability(summary: RunSummary) -> Figure | None:
    """Accuracy over confidence, and how many answers each confidence has."""
    bins = [item for item in summary.reliability if item.count]
    if not bins:
        return None
    figure = new_figure(5.2, 4.6)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    width = bins[0].high - bins[0].low
    middle = [(item.low + item.high) / 2 for item in bins]
    top.bar(middle, [item.accuracy for item in bins], width=width * 0.9, color=FIRST,
            label="measured")  # fmt: skip
    top.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1, label="perfect")
    top.set_ylabel("share right")
    top.set_ylim(0, 1)
    top.set_xlim(0, 1)
    top.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
    bottom.bar(middle, [item.count for item in bins], width=width * 0.9, color=MUTED)
    bottom.set_ylabel("answers")
    bottom.set_xlabel("confidence")
    return figure


def draw_lengths(summary: RunSummary) -> Figure | None:
    """Histogram of token counts, with the line behind which texts are cut."""
    if not summary.lengths:
        return None
    lengths = np.array(sorted(summary.lengths), dtype=np.int64)
    counts = np.array([summary.lengths[int(length)] for length in lengths], dtype=np.float64)
    limit = summary.max_length
    # One very long text must not squeeze the others into one bar.
    shown = int(max(limit * 1.25, _quantile(lengths, counts, 0.995) * 1.1, 8))
    figure = new_figure(7.2, 2.8)
    axes = figure.subplots()
    width = -(-shown // MAX_BARS)
    edges = np.arange(0, shown + 2 * width, width) - 0.5
    shown = int(edges[-1] - 0.5)
    for colour, part, label in (
        (FIRST, lengths <= limit, "kept whole"),
        (SECOND, lengths > limit, "cut"),
    ):
        if part.any():
            share = counts[part].sum() / counts.sum()
            axes.hist(np.minimum(lengths[part], shown), bins=edges, weights=counts[part],
                      color=colour, label=f"{label}: {100 * share:.1f} %")  # fmt: skip
    axes.axvline(limit + 0.5, color=INK, linestyle="--", linewidth=1.2)
    axes.text(limit, 1.02, f"limit {limit}", transform=axes.get_xaxis_transform(), ha="center",
              fontsize=9, color=INK)  # fmt: skip
    axes.set_xlim(0, shown + 0.5)
    last = f" (last bar: {shown} and more)" if lengths.max() > shown else ""
    axes.set_xlabel(f"tokens per training example{last}")
    axes.set_ylabel("examples")
    axes.legend(loc="upper right")
    return figure


def draw_baselines(summary: RunSummary) -> Figure | None:
    """The main score beside those of the simple models."""
    metric = summary.metric
    rows = [
        (_short(BASELINE_NAMES.get(item.name, item.name)), item.scores[metric], MUTED)
        for item in summary.baselines
        if metric in item.scores
    ]
    if metric not in summary.scores:
        return None
    rows.append(("this model", summary.scores[metric], FIRST))
    figure = new_figure(7.2, 0.7 + 0.5 * len(rows))
    axes = figure.subplots()
    place = np.arange(len(rows))[::-1]
    values = np.array([value for _, value, _ in rows])
    axes.barh(place, values, color=[colour for *_, colour in rows], height=0.62)
    low, high = min(0.0, float(values.min())), max(1.0, float(values.max()))
    for y, value in zip(place, values, strict=True):
        axes.text(max(value, 0.0) + 0.01 * (high - low), y, format_score(metric, float(value)),
                  va="center", color=INK)  # fmt: skip
    axes.set_xlim(low, low + 1.16 * (high - low))
    axes.set_yticks(place, [name for name, *_ in rows])
    axes.set_xlabel(_short(readable(metric)))
    axes.grid(visible=False, axis="y")
    return figure


def draw_points(summary: RunSummary) -> Figure | None:
    """Regression: answers over targets, with the line on which they are equal."""
    if not summary.points:
        return None
    points = np.array(summary.points)
    figure = new_figure(4.8, 4.4)
    axes = figure.subplots()
    ends = [float(points.min()), float(points.max())]
    axes.plot(ends, ends, color=MUTED, linestyle="--", linewidth=1)
    axes.scatter(points[:, 0], points[:, 1], s=9, alpha=0.5, color=FIRST, linewidths=0)
    axes.set_xlabel("target")
    axes.set_ylabel("answer")
    return figure


PLOTS: Final[dict[str, Callable[[RunSummary], Figure | None]]] = {
    "baselines": draw_baselines,
    "curves": draw_curves,
    "confusion": draw_confusion,
    "points": draw_points,
    "reliability": draw_reliability,
    "lengths": draw_lengths,
}
"""Every figure by its file name."""


def _draw_loss(axes: Axes, summary: RunSummary) -> None:
    steps, values = np.array(summary.loss.steps), np.array(summary.loss.values)
    if len(values) >= MIN_SMOOTHED:
        axes.plot(steps, values, color=FIRST, linewidth=0.7, alpha=0.3)
        window = max(3, len(values) // 30)
        smooth = np.convolve(values, np.ones(window) / window, mode="valid")
        axes.plot(steps[window - 1 :], smooth, color=FIRST, label=f"loss (mean of {window})")
    else:
        axes.plot(steps, values, color=FIRST, label="loss")
    axes.set_ylabel("training loss")
    axes.set_ylim(bottom=min(0.0, float(values.min(initial=0.0))))
    handles, names = axes.get_legend_handles_labels()
    if summary.learning_rate.steps:
        other = axes.twinx()
        other.plot(summary.learning_rate.steps, summary.learning_rate.values, color=SECOND,
                   linewidth=1.2, linestyle="--", label="learning rate")  # fmt: skip
        other.set_ylabel("learning rate")
        other.set_ylim(bottom=0)
        other.grid(visible=False)
        other.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        more, more_names = other.get_legend_handles_labels()
        handles, names = handles + more, names + more_names
    if handles:
        axes.legend(handles, names, loc="upper right")


def _draw_scores(axes: Axes, summary: RunSummary) -> None:
    colours = (FIRST, SECOND, MUTED)
    for i, (name, curve) in enumerate(summary.eval_scores.items()):
        axes.plot(curve.steps, curve.values, marker="o", markersize=3.5,
                  color=colours[i % len(colours)], label=_short(readable(name)))  # fmt: skip
    for item in summary.baselines:
        if summary.metric in item.scores and summary.metric in summary.eval_scores:
            name = _short(BASELINE_NAMES.get(item.name, item.name))
            axes.axhline(item.scores[summary.metric], color=MUTED, linewidth=1,
                         linestyle="--" if item.name == "tfidf" else "-.", label=name)  # fmt: skip
    axes.set_ylabel("evaluation")
    axes.legend(loc="best")


def _blues() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("litebert", ["#eef2f8", "#7aa5ea", "#123f91"])


def _root() -> Any:
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0, vmax=1)


def _short(label: str) -> str:
    plain = "".join(c if c.isprintable() else " " for c in label)
    return plain if len(plain) <= NAME_LENGTH else plain[: NAME_LENGTH - 1] + "…"


def _quantile(lengths: np.ndarray, counts: np.ndarray, share: float) -> float:
    reached = np.searchsorted(np.cumsum(counts), share * counts.sum())
    return float(lengths[min(int(reached), len(lengths) - 1)])
