"""`litebert doctor`: is this machine fit, and what should be fixed."""

from __future__ import annotations

import typer

from litebert.cli.output import show, show_json

MARKS = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


def doctor(
    as_json: bool = typer.Option(False, "--json", help="Print the findings as JSON."),
    quick: bool = typer.Option(False, "--quick", help="Leave out what takes seconds."),
) -> None:
    """Check this machine: cores, memory, disk, packages."""
    from litebert.recipes.doctor import diagnose

    diagnosis = diagnose(quick=quick)
    if as_json:
        show_json(diagnosis.to_dict())
    else:
        for check in diagnosis.checks:
            show(f"{MARKS[check.verdict]}  {check.name:<18} {check.found}")
            if check.remedy:
                show(f"{'':<9}{'':<18} -> {check.remedy}")
    if not diagnosis.is_healthy:
        raise typer.Exit(1)
