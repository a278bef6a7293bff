"""`litebert convert`: a pickled checkpoint becomes a safe model folder."""

from __future__ import annotations

from pathlib import Path

import typer

from litebert.cli.output import say, show


def convert(
    source: Path = typer.Argument(
        metavar="SOURCE", help="pytorch_model.bin or .pt file, or the folder that holds it."
    ),
    out: Path = typer.Argument(metavar="OUT", help="Model folder to write."),
) -> None:
    """Convert a .bin or .pt checkpoint to safetensors.

    It is read in a subprocess of its own, where none of its code can run.
    """
    from litebert.checkpoint.convert import convert_pickle

    report = convert_pickle(source, out)
    say(str(report))
    show(f"wrote {out}")
