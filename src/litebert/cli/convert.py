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
    standard: bool = typer.Option(
        False,
        "--standard",
        help="SOURCE is a model folder that only litebert computes: write its twin for transformers.",
    ),
) -> None:
    """Convert a .bin or .pt checkpoint to safetensors.

    It is read in a subprocess of its own, where none of its code can run.
    """
    if standard:
        from litebert.recipes.standard import write_standard

        show(f"wrote {out}: {write_standard(source, out):,} weights, a block for each depth")
        return
    from litebert.checkpoint.convert import convert_pickle

    report = convert_pickle(source, out)
    say(str(report))
    show(f"wrote {out}")
