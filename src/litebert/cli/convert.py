"""`litebert convert`: a pickled checkpoint becomes a safe model folder."""

from __future__ import annotations

from pathlib import Path

import typer


def convert(
    source: Path = typer.Argument(
        help="pytorch_model.bin or .pt file, or the folder that holds it."
    ),
    out: Path = typer.Argument(help="Model folder to write."),
) -> None:
    """Convert a .bin or .pt checkpoint to safetensors, in a subprocess without rights to run its code."""
    from litebert.checkpoint.convert import convert_pickle

    report = convert_pickle(source, out)
    typer.echo(str(report), err=True)
    typer.echo(f"wrote {out}")
