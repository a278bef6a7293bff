"""Tables of the report on parts of the evaluation examples: scores by slice, answers above a threshold."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from litebert.recipes.markup import Html, element, table
from litebert.recipes.verdict import format_score, readable, score_noise

if TYPE_CHECKING:
    from litebert.recipes.summary import RunSummary
    from litebert.tasks.slices import SliceScore

__all__ = ["abstention_table", "slice_lines", "slice_tables"]

TITLES: Final = {
    "length": "By length",
    "overlap": "By shared words",
    "target": "By target",
    "class": "By class",
}


def slice_tables(summary: RunSummary) -> list[Html]:
    """Return one table for each kind of slice."""
    parts: list[Html] = []
    for kind, items in groupby(summary.slices, key=lambda item: item.by):
        rows = list(items)
        names = list(dict.fromkeys(name for row in rows for name in row.scores))
        parts.append(
            table(
                TITLES.get(kind, kind),
                ("part", "examples", *(readable(name) for name in names), "plus or minus"),
                [(r.name, f"{r.count:,}", *_scores(r, names), _noise(r)) for r in rows],
                numbers=range(1, 3 + len(names)),
                tall=len(rows) > 15,
            )
        )
    if parts:
        parts.append(
            element("p", "A part that is clearly below the others is where more training examples help "
                    "most. Small parts vary by chance: the last column is half of a 95 % interval.",
                    class_="note")
        )  # fmt: skip
    return parts


def abstention_table(summary: RunSummary) -> list[Html]:
    """Return how many examples can be answered at a wanted accuracy."""
    if not summary.abstention:
        return []
    rows = [
        (
            f"{100 * point.target:.0f} %",
            "not reached" if point.threshold is None else f"{point.threshold:.3f}",
            f"{100 * point.coverage:.1f} %",
            f"{100 * point.accuracy:.1f} %" if point.coverage else "",
        )
        for point in summary.abstention
    ]
    return [
        table(
            "Answers above a threshold",
            ("wanted accuracy", "answer from this confidence on", "answered", "right among them"),
            rows,
            numbers=range(4),
        ),
        element("p", "litebert predict --abstain-below THRESHOLD leaves less certain answers out. Each "
                "half of the examples was answered with the threshold that the other half chose.",
                class_="note"),
    ]  # fmt: skip


def slice_lines(slices: tuple[SliceScore, ...]) -> list[str]:
    """Return the slices for a terminal."""
    lines: list[str] = []
    for kind, items in groupby(slices, key=lambda item: item.by):
        rows = list(items)
        names = list(dict.fromkeys(name for row in rows for name in row.scores))
        width = max(len(TITLES.get(kind, kind)), *(len(row.name) for row in rows))
        head = "".join(f"  {name:>{max(8, len(name))}}" for name in names)
        lines += ["", f"{TITLES.get(kind, kind):<{width}}  examples{head}"]
        for row in rows:
            cells = "".join(
                f"  {row.scores[name]:>{max(8, len(name))}.4f}"
                if name in row.scores
                else " " * (2 + max(8, len(name)))
                for name in names
            )
            lines.append(f"{row.name:<{width}}  {row.count:>8,}{cells}")
    return lines


def _scores(row: SliceScore, names: list[str]) -> list[str]:
    return [format_score(name, row.scores[name]) if name in row.scores else "" for name in names]


def _noise(row: SliceScore) -> str:
    for name, value in row.scores.items():
        noise = score_noise(name, value, row.count)
        if noise is not None:
            return f"{100 * noise:.1f}"
    return ""
