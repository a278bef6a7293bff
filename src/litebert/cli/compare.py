"""`litebert compare`: several models beside each other."""

from __future__ import annotations

import typer

from litebert.cli.output import show, show_json


def compare(
    models: list[str] = typer.Argument(
        metavar="MODEL|PRESET", help="Presets, model folders, run folders or config.json files."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Compare what models cost: the paper's Table 1 as numbers."""
    from litebert.recipes.describe import describe, table

    costs = [describe(name) for name in models]
    if as_json:
        show_json([cost.to_dict() for cost in costs])
        return
    rows = table(costs)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first, *rest = (
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        show("  ".join([first, *rest]))
