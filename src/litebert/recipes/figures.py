"""Figures as PNG and SVG files, and as SVG text that follows the colours of a page.

Figures are built without pyplot, so nothing is registered globally and nothing needs closing.
Needs matplotlib (extra "train"), imported on first use.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from litebert.checkpoint.fs import make_folder, write_atomic
from litebert.errors import MissingDependencyError

__all__ = ["FIRST", "GRID", "INK", "MUTED", "PAPER", "SECOND", "Axes", "Figure", "Plot",
           "figure_style", "log_scale", "new_figure", "render", "save_plots"]  # fmt: skip

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


def log_scale(axes: Axes) -> None:
    """Give vertical places a logarithmic scale with plain numbers: formulas are not set (`figure_style`)."""
    from matplotlib.ticker import FuncFormatter

    def plain(value: float, _: object) -> str:
        return f"{value:g}" if f"{value:e}"[0] in "1235" else ""

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(plain))
    axes.yaxis.set_minor_formatter(FuncFormatter(plain))


def render(figure: Figure | None) -> Plot | None:
    """Return a figure as PNG and SVG; call it inside `figure_style`."""
    if figure is None:
        return None
    png, svg = io.BytesIO(), io.StringIO()
    figure.savefig(png, format="png", dpi=PNG_DPI, facecolor=PAPER)
    figure.set_layout_engine("none")  # keeps the layout that was found for the PNG
    metadata = {"Date": None, "Creator": "litebert"}
    figure.savefig(svg, format="svg", facecolor=PAPER, metadata=metadata)
    return Plot(png.getvalue(), svg.getvalue())


def save_plots(plots: Mapping[str, Plot], folder: Path) -> None:
    """Write NAME.png and NAME.svg of every plot; the folder is made if need be."""
    make_folder(folder)
    for name, plot in plots.items():
        write_atomic(folder / f"{name}.png", plot.png)
        write_atomic(folder / f"{name}.svg", plot.svg.encode())


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches."""
    from matplotlib.figure import Figure as MatplotlibFigure

    return MatplotlibFigure(figsize=(width, height), layout="constrained")


@contextmanager
def figure_style(name: str) -> Generator[None]:
    """Draw in one style, the same for all figures; `name` makes ids in the SVG repeatable.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
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
