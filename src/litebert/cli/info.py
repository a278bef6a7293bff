"""`litebert info`: what one model costs."""

from __future__ import annotations

import json

import typer


def info(
    model: str = typer.Argument(
        "", metavar="[MODEL|PRESET]", help="Preset, model folder, run folder or config.json."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print as JSON."),
) -> None:
    """Show parameters, bytes, FLOPs per token and activation memory; without a name, list the presets."""
    from litebert.model.presets import PRESETS
    from litebert.recipes.describe import describe

    if not model:
        typer.echo(json.dumps(list(PRESETS)) if as_json else "\n".join(PRESETS))
        return
    costs = describe(model)
    typer.echo(
        json.dumps(costs.to_dict(), indent=2, ensure_ascii=False)
        if as_json
        else "\n".join(costs.lines())
    )
