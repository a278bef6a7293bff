"""Score over mean depth and over speed: every depth, every rule, and the choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litebert.recipes.figures import (
    FIRST,
    INK,
    MUTED,
    SECOND,
    Axes,
    Plot,
    figure_style,
    new_figure,
    render,
)
from litebert.recipes.verdict import readable
from litebert.tasks.scores import SCORES

if TYPE_CHECKING:
    from collections.abc import Callable

    from litebert.tasks.exit_file import ExitCurve, ExitPoint

__all__ = ["draw_exits"]


def draw_exits(curve: ExitCurve) -> Plot:
    """Draw the two.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    with figure_style("exits"):
        figure = new_figure(9.0, 3.6)
        left, right = figure.subplots(1, 2, sharey=True)
        _draw(left, curve, lambda point: point.mean_depth)
        _draw(right, curve, lambda point: point.sentences_per_second)
        left.set_xlabel("depths that a token goes through, mean")
        right.set_xlabel(f"sentences per second, {curve.threads} thread(s)")
        left.set_ylabel(readable(curve.metric))
        left.legend(loc="best")
        plot = render(figure)
    assert plot is not None  # noqa: S101 - a figure was drawn
    return plot


def _draw(axes: Axes, curve: ExitCurve, place: Callable[[ExitPoint], float | None]) -> None:
    known = [(x, point) for point in curve.points if (x := place(point)) is not None]
    depths = sorted((x, point.score) for x, point in known if not point.rule)
    rules = [(x, point.score) for x, point in known if point.rule]
    axes.plot(*_columns(depths), color=MUTED, marker="o", markersize=3.5, label="fixed depth")
    axes.scatter(*_columns(rules), color=FIRST, s=9, alpha=0.6, label="exit rules")
    sign = 1.0 if SCORES[curve.metric].higher_is_better else -1.0
    limit = curve.full.score - sign * curve.max_drop
    axes.axhline(limit, color=INK, linestyle=":", linewidth=1, label="allowed")
    x = place(curve.chosen)
    if x is not None:
        axes.scatter(
            [x], [curve.chosen.score], color=SECOND, marker="*", s=130, zorder=3, label="chosen"
        )


def _columns(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]
