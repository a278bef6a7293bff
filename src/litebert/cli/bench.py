"""`litebert bench`: what a model costs to run here, by every back-end that is installed."""

from __future__ import annotations

from pathlib import Path

import typer

from litebert.cli.output import say, show, show_json


def bench(
    model: list[Path] = typer.Argument(
        metavar="MODEL...", help="Model folder, run folder or export; several of one model."
    ),
    data: Path | None = typer.Option(
        None, "--data", help="Own texts to measure with; with labels, the score as well."
    ),
    text_column: str | None = typer.Option(None, "--text-column", help="Column with the text."),
    length: list[int] | None = typer.Option(
        None, "--length", min=3, help="Tokens of single sequences; usual: 16, 64, 128, 384."
    ),
    rounds: int = typer.Option(7, "--rounds", min=1, help="Repeats; medians count."),
    threads: int | None = typer.Option(
        None, "--threads", min=1, help="Threads that compute; usual: one a usable CPU."
    ),
    plot: Path | None = typer.Option(None, "--plot", help="Draw latencies into .png or .svg."),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Measure memory, start, latency, texts a second and score of every back-end, in turns.

    Each back-end runs in a process of its own. Latencies are p50/p99; "of GEMM" is the share of the
    speed of one large product in float32 on this machine.
    """
    from litebert.recipes.bench.report import bench as run
    from litebert.recipes.bench.run import LENGTHS

    report = run(
        model,
        data=data,
        lengths=length or LENGTHS,
        rounds=rounds,
        threads=threads,
        text_column=text_column,
        say=say,
    )
    if plot is not None:
        report.save_plot(plot)
        say(f"wrote {plot}")
    if as_json:
        show_json(report.to_dict())
    else:
        show("\n".join(report.lines()))
