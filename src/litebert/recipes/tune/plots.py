"""Figures of a search: scores in the order of the trials, by setting, and what mattered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from litebert.recipes.figures import (
    FIRST,
    INK,
    MUTED,
    SECOND,
    Figure,
    Plot,
    figure_style,
    new_figure,
    render,
)
from litebert.recipes.verdict import BASELINE_NAMES, readable

if TYPE_CHECKING:
    from collections.abc import Callable

    from litebert.recipes.tune.outcome import SearchOutcome
    from litebert.recipes.tune.space import Dimension

__all__ = ["draw_search"]

COLUMNS: Final = 3
WIDE_NAMES: Final = 18
"""Characters of all choices together from which on they are written aslant."""


def draw_search(outcome: SearchOutcome) -> dict[str, Plot]:
    """Draw every figure that the search has data for.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    plots: dict[str, Plot] = {}
    for name, draw in _FIGURES.items():
        with figure_style(name):
            plot = render(draw(outcome))
            if plot is not None:
                plots[name] = plot
    return plots


def _history(outcome: SearchOutcome) -> Figure | None:
    """Score of each trial, the best so far, and the baselines."""
    scored = [r for r in outcome.records if r.score is not None]
    done = [r for r in scored if r.state == "done"]
    if not done:
        return None
    figure = new_figure(7.2, 3.6)
    axes = figure.subplots()
    early = [r for r in scored if r.state != "done"]
    if early:
        axes.scatter([r.number for r in early], [r.score for r in early], s=26, marker="x",
                     color=MUTED, linewidths=1.2, label="ended early")  # fmt: skip
    axes.scatter([r.number for r in done], [r.score for r in done], s=26, color=FIRST,
                 label="trial")  # fmt: skip
    signed = outcome.sign * np.array([r.score for r in done], np.float64)
    axes.plot([r.number for r in done], outcome.sign * np.maximum.accumulate(signed), color=SECOND,
              drawstyle="steps-post", label="best so far")  # fmt: skip
    for baseline in outcome.baselines:
        if outcome.metric in baseline.scores:
            axes.axhline(baseline.scores[outcome.metric], color=INK, linewidth=1,
                         linestyle="--" if baseline.name == "tfidf" else "-.",
                         label=BASELINE_NAMES.get(baseline.name, baseline.name))  # fmt: skip
    axes.set_xlabel("trial")
    axes.set_ylabel(readable(outcome.metric))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="best")
    return figure


def _importance(outcome: SearchOutcome) -> Figure | None:
    """Share of each setting in the spread of the scores."""
    shares = list(outcome.importances.items())
    if not shares:
        return None
    figure = new_figure(7.2, 0.8 + 0.4 * len(shares))
    axes = figure.subplots()
    place = np.arange(len(shares))[::-1]
    axes.barh(place, [share for _, share in shares], color=FIRST, height=0.62)
    for y, (_, share) in zip(place, shares, strict=True):
        axes.text(share + 0.01, y, f"{100 * share:.0f} %", va="center", color=INK)
    axes.set_yticks(place, [name for name, _ in shares])
    axes.set_xlim(0, 1.12 * max(share for _, share in shares) + 0.02)
    axes.set_xlabel("share in the spread of the scores (PED-ANOVA)")
    axes.grid(visible=False, axis="y")
    return figure


def _settings(outcome: SearchOutcome) -> Figure | None:
    """Score over each setting, one small figure a setting."""
    done = [r for r in outcome.records if r.state == "done" and r.score is not None]
    if len(done) < 2:
        return None
    rows = -(-len(outcome.space) // COLUMNS)
    columns = min(COLUMNS, len(outcome.space))
    figure = new_figure(2.5 * columns + 0.8, 2.3 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel().tolist()
    best = outcome.best
    for axes, dimension in zip(grid, outcome.space, strict=False):
        places = [_place(dimension, r.values.get(dimension.name)) for r in done]
        colours = [SECOND if r is best else FIRST for r in done]
        axes.scatter(places, [r.score for r in done], s=20, color=colours)
        if dimension.choices:
            names = [str(choice) for choice in dimension.choices]
            is_wide = sum(map(len, names)) > WIDE_NAMES
            axes.set_xticks(range(len(names)), names, rotation=30 if is_wide else 0,
                            ha="right" if is_wide else "center")  # fmt: skip
            axes.set_xlim(-0.5, len(names) - 0.5)
        elif dimension.is_log:
            axes.set_xscale("log")
            ends = (dimension.low, float(np.sqrt(dimension.low * dimension.high)), dimension.high)
            axes.set_xticks(ends, [f"{end:.0e}".replace("e-0", "e-") for end in ends])
            axes.set_xticks([], minor=True)
        axes.set_xlabel(dimension.name.rsplit(".", 1)[-1])
    for axes in grid[len(outcome.space) :]:
        axes.set_visible(False)
    figure.supylabel(readable(outcome.metric), fontsize=10, color=MUTED)
    return figure


def _place(dimension: Dimension, value: object) -> float:
    if dimension.choices:
        return float(dimension.choices.index(value)) if value in dimension.choices else float("nan")  # pyright: ignore[reportArgumentType]
    return float(value) if isinstance(value, int | float) else float("nan")


_FIGURES: Final[dict[str, Callable[[SearchOutcome], Figure | None]]] = {
    "history": _history,
    "importance": _importance,
    "settings": _settings,
}
