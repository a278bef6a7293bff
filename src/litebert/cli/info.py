"""`litebert info`: what one model costs."""

from __future__ import annotations

import typer

from litebert.cli.output import show, show_json


def info(
    model: str = typer.Argument(
        "", metavar="MODEL|PRESET", help="Preset, model folder, run folder or config.json."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Show what a model costs; without a name, list the presets.

    Parameters, bytes, operations per token, activation memory, and the same without sharing.
    """
    from litebert.model.presets import PRESETS
    from litebert.recipes.describe import describe

    if not model:
        if as_json:
            show_json(list(PRESETS))
        else:
            show("\n".join(PRESETS))
        return
    costs = describe(model)
    if as_json:
        show_json(costs.to_dict())
    else:
        show("\n".join(costs.lines()))
