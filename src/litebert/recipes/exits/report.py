"""What `litebert exits` says and writes: a table, a plot, `exits.json`, and a part of the model card."""

from __future__ import annotations

import logging
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from litebert.checkpoint.files import CARD_FILE
from litebert.checkpoint.fs import write_atomic
from litebert.errors import MissingDependencyError
from litebert.model.config import AlbertConfig
from litebert.model.counting import parameter_count
from litebert.recipes.compress_measure import Side, weight_bytes
from litebert.recipes.compress_report import (
    REPORT_FILE,
    StepReport,
    dump_report,
    earlier_steps,
    read_card,
)
from litebert.recipes.exits.plot import draw_exits
from litebert.recipes.figures import save_plots
from litebert.recipes.markup import inline
from litebert.recipes.verdict import format_score, readable
from litebert.tasks.exit_file import EXIT_FILE

if TYPE_CHECKING:
    from litebert.recipes.exits.run import ExitResult
    from litebert.tasks.exit_file import ExitCurve, ExitPoint

__all__ = ["result_lines", "write_result"]

log = logging.getLogger(__name__)
_HEADING: Final = "## Depth and speed"
_SECTION: Final = re.compile(r"^## Depth and speed[ \t]*\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
STEP: Final = "exits"


def result_lines(result: ExitResult) -> list[str]:
    """Return the timed settings and the choice, for a person."""
    curve = result.curve
    rows = [
        ("", *_head(curve)),
        *(("*" if p == curve.chosen else "", *_row(curve, p)) for p in _timed(curve)),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [*lines, "", *_sentences(result)]


def write_result(result: ExitResult) -> list[str]:
    """Write everything into the model folder; return the names of the files.

    Raises:
        CheckpointError: the disk refuses.
    """
    folder, curve = result.folder, result.curve
    has_plot = True
    try:
        save_plots({STEP: draw_exits(curve)}, folder / "plots")
    except MissingDependencyError as error:
        log.warning("the plot is left out: %s", error)
        has_plot = False
    write_atomic(folder / EXIT_FILE, curve.to_json().encode())
    write_atomic(
        folder / REPORT_FILE, dump_report(_step(result)).encode("utf-8", "backslashreplace")
    )
    card = read_card(folder) or f"# {inline(folder.name)}\n"
    section = _section(result, has_plot=has_plot)
    if _SECTION.search(card):
        card = _SECTION.sub(lambda _: section + "\n", card, count=1).rstrip("\n") + "\n"
    else:
        card = card.rstrip("\n") + "\n\n" + section
    write_atomic(folder / CARD_FILE, card.encode("utf-8", "replace"))
    plots = [f"plots/{STEP}.svg", f"plots/{STEP}.png"] if has_plot else []
    return [EXIT_FILE, CARD_FILE, REPORT_FILE, *plots]


def _timed(curve: ExitCurve) -> list[ExitPoint]:
    return sorted(
        (point for point in curve.points if point.sentences_per_second is not None),
        key=lambda point: (point.rule != "", -point.mean_depth),
    )


def _head(curve: ExitCurve) -> tuple[str, ...]:
    return ("setting", readable(curve.metric), "mean depth", "sentences/s", "speed")


def _row(curve: ExitCurve, point: ExitPoint) -> tuple[str, ...]:
    speed, full = point.sentences_per_second, curve.full.sentences_per_second
    return (
        _name(curve, point),
        format_score(curve.metric, point.score),
        f"{point.mean_depth:.2f}",
        "" if speed is None else f"{speed:,.1f}",
        "" if speed is None or not full else f"x {speed / full:.2f}",
    )


def _name(curve: ExitCurve, point: ExitPoint) -> str:
    if point.rule:
        return point.rule
    return f"all {point.depth} depths" if point == curve.full else f"depth {point.depth}"


def _sentences(result: ExitResult) -> list[str]:
    curve = result.curve
    chosen, full = curve.chosen, curve.full
    gain = "" if curve.speedup is None else f", {curve.speedup:.2f} times the sentences per second"
    lines = [
        f"Chosen: {_name(curve, chosen)}: {readable(curve.metric)} "
        f"{format_score(curve.metric, full.score)} with all depths, "
        f"{format_score(curve.metric, chosen.score)} so{gain}.",
        f"It is the fastest that loses at most {curve.max_drop:g} on {curve.examples:,} texts of "
        f"{curve.data}. " + _expectation(curve.expected_drop),
        f"Speed: PyTorch, {curve.threads} thread{'' if curve.threads == 1 else 's'}, texts of all lengths "
        "in packed batches, the fastest of alternating runs"
        + (" in processor time." if curve.threads == 1 else "."),
    ]
    return [*lines, *result.notes]


def _expectation(drop: float) -> str:
    if not math.isfinite(drop):
        return "Too few texts to say what it loses on others."
    word = "loses" if drop >= 0 else "gains"
    return f"Chosen on one half of them it {word} {abs(drop):.4f} on the other."


def _section(result: ExitResult, *, has_plot: bool) -> str:
    curve = result.curve
    head = _head(curve)
    table = [
        "| " + " | ".join(head) + " |",
        "|---|" + "---:|" * (len(head) - 1),
        *(
            "| " + " | ".join(inline(cell) for cell in _row(curve, point)) + " |"
            for point in _timed(curve)
        ),
    ]
    parts = [
        _HEADING,
        "\n".join(f"- {inline(line)}" for line in _sentences(result)),
        "`litebert predict MODEL TEXT --exit auto` uses the chosen setting.",
        "\n".join(table),
    ]
    if has_plot:
        parts.append(f"![score by depth and speed](plots/{STEP}.svg)")
    return "\n\n".join(parts) + "\n"


def _step(result: ExitResult) -> StepReport:
    """The entry of `report.json`, in place of the one of an earlier `litebert exits`."""
    curve, folder = result.curve, result.folder
    config = AlbertConfig.load(folder)
    side = Side(
        name=folder.name,
        weight_bytes=weight_bytes(folder),
        parameters=parameter_count(config, head=config.litebert.head or "sequence"),
        depth=config.num_hidden_layers,
        metric=curve.metric,
        scores=result.scores[0],
        examples=curve.examples,
    )
    facts: dict[str, Any] = curve.to_dict()
    del facts["points"]
    steps = list(earlier_steps(folder))
    while steps and steps[-1].get("step") == STEP:
        steps.pop()
    return StepReport(
        step=STEP,
        before=side,
        after=replace(side, scores=result.scores[1]),
        outputs=None,
        threads=curve.threads,
        data=curve.data,
        max_drop=curve.max_drop,
        facts=facts,
        notes=tuple(_sentences(result)),
        figures=(STEP,),
        earlier=tuple(steps),
    )
