"""Figures of a run, as PNG and SVG files and as SVG text that follows the colours of a page.

Figures are built without pyplot, so nothing is registered globally and nothing needs closing.
Needs matplotlib (extra "train"), imported on first use.
"""

from __future__ import annotations

import io
import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from litebert.checkpoint.fs import make_folder, write_atomic
from litebert.errors import MissingDependencyError
from litebert.recipes.verdict import BASELINE_NAMES, format_score, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from pathlib import Path

    from litebert.recipes.summary import RunSummary

__all__ = ["PLOTS", "Plot", "draw_plots", "save_plots"]

Axes = Any
Figure = Any
"""matplotlib's own types are looser than strict checking wants."""

INK: Final = "#1d2430"
MUTED: Final = "#6a7487"
GRID: Final = "#d9dee7"
FIRST: Final = "#2f6fde"
SECOND: Final = "#d9822b"
PAPER: Final = "#fefefe"
PAGE_COLOURS: Final = {
    INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)",
    FIRST: "var(--first)", SECOND: "var(--second)",
    PAPER: "none",
}  # fmt: skip
"""What each colour becomes in a page, so that dark mode recolours figures too."""

ANNOTATED_CLASSES: Final = 12
"""Up to this many classes the confusion matrix shows its counts."""
NAMED_CLASSES: Final = 40
"""Up to this many classes the confusion matrix names them on its axes."""
NAME_LENGTH: Final = 22
MAX_BARS: Final = 60
MIN_SMOOTHED: Final = 60
"""From this many points on, the loss gets a smoothed line."""
PNG_DPI: Final = 130
_WIDE_SCRIPTS: Final = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "IPAGothic", "WenQuanYi Zen Hei", "Droid Sans Fallback",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plot:
    """One finished figure."""

    png: bytes
    svg: str
    """A standalone SVG document; its text is text, not outlines."""

    def for_page(self, title: str) -> str:
        """Return an `<svg>` element for a page, recoloured by CSS variables (`PAGE_COLOURS`).

        `title` is what a screen reader says; it must already be escaped for HTML.
        """
        body = self.svg[self.svg.index("<svg") :]
        # The description block names outside schemas; a page without a network needs none.
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        for colour, variable in PAGE_COLOURS.items():
            body = body.replace(colour, variable)
        head, rest = body.split(">", 1)
        head = re.sub(r'\s(width|height)="[^"]*"', "", head)
        return f'{head} role="img" aria-label="{title}"><title>{title}</title>{rest}'


def draw_plots(summary: RunSummary, names: Iterable[str] | None = None) -> dict[str, Plot]:
    """Draw every figure that the run has data for, or those of `names` (keys of `PLOTS`).

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    plots: dict[str, Plot] = {}
    for name in PLOTS if names is None else names:
        with _style(name):
            figure = PLOTS[name](summary)
            if figure is None:
                continue
            png, svg = io.BytesIO(), io.StringIO()
            figure.savefig(png, format="png", dpi=PNG_DPI, facecolor=PAPER)
            figure.set_layout_engine("none")  # keeps the layout that was found for the PNG
            metadata = {"Date": None, "Creator": "litebert"}
            figure.savefig(svg, format="svg", facecolor=PAPER, metadata=metadata)
            plots[name] = Plot(png.getvalue(), svg.getvalue())
    return plots


def save_plots(plots: Mapping[str, Plot], folder: Path) -> None:
    """Write NAME.png and NAME.svg of every plot; the folder is made if need be."""
    make_folder(folder)
    for name, plot in plots.items():
        write_atomic(folder / f"{name}.png", plot.png)
        write_atomic(folder / f"{name}.svg", plot.svg.encode())


def draw_curves(summary: RunSummary) -> Figure | None:
    """Training loss and learning rate above, evaluation scores below."""
    scores = {name: curve for name, curve in summary.eval_scores.items() if curve.steps}
    if not summary.loss.steps and not scores:
        return None
    figure = _figure(7.2, 4.8 if scores else 2.8)
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
    figure = _figure(side + (1.4 if is_named else 1.0), side)
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
    figure = _figure(5.2, 4.6)
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
    figure = _figure(7.2, 2.8)
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
    figure = _figure(7.2, 0.7 + 0.5 * len(rows))
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
    figure = _figure(4.8, 4.4)
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


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure as MatplotlibFigure

    return MatplotlibFigure(figsize=(width, height), layout="constrained")


@contextmanager
def _style(name: str) -> Generator[None]:
    try:
        import matplotlib as mpl
        from matplotlib import font_manager
    except ImportError as error:
        raise MissingDependencyError(
            "matplotlib", extra="train", purpose="drawing plots"
        ) from error
    known = {font.name for font in font_manager.fontManager.ttflist}
    settings: dict[str, Any] = {
        "font.family": ["DejaVu Sans", *(font for font in _WIDE_SCRIPTS if font in known)],
        "font.size": 10, "text.color": INK, "text.parse_math": False,
        "axes.facecolor": PAPER,
        "axes.edgecolor": GRID, "axes.labelcolor": MUTED, "axes.grid": True,
        "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
        "grid.color": GRID, "grid.linewidth": 0.7, "xtick.color": MUTED, "ytick.color": MUTED,
        "xtick.labelcolor": INK, "ytick.labelcolor": INK, "legend.frameon": False,
        "legend.fontsize": 9, "lines.linewidth": 1.8, "svg.fonttype": "none",
        "svg.hashsalt": f"litebert-{name}",
    }  # fmt: skip
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        cast("dict[str, Any]", mpl.rcParams).update(settings)
        # A label in a script that no installed font has is drawn as boxes; the SVG is right.
        warnings.filterwarnings(
            "ignore", message=r"constrained_layout not applied", category=UserWarning
        )
        warnings.filterwarnings("ignore", message=r".*missing from font.*", category=UserWarning)
        yield


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
