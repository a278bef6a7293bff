"""The command line: `litebert COMMAND`. Only this package prints.

Results go to stdout, talk to stderr. Each command imports what it needs when it runs, so that
`litebert --help` starts without torch.
"""

from __future__ import annotations

from pathlib import Path

import typer

from litebert.cli import (
    bench,
    compare,
    convert,
    data,
    distill,
    doctor,
    embed,
    evaluate,
    exits,
    export,
    fill,
    fold,
    glue,
    info,
    predict,
    prepare,
    pretrain,
    prune,
    quantize,
    quickstart,
    search,
    serve,
    train,
    tune,
    vocab,
)
from litebert.cli.faults import FaultGroup
from litebert.cli.output import prepare_streams

app = typer.Typer(
    name="litebert",
    cls=FaultGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help without rich starts in half the time
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train, shrink and ship small text encoders (ALBERT and its kin).",
    epilog="Start with: litebert quickstart    Your own data: litebert train reviews.csv",
)


def _show_version(shown: bool) -> None:
    if shown:
        from litebert import __version__

        typer.echo(f"litebert {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False,
        "--version",
        callback=_show_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
    debug: bool = typer.Option(
        False, "--debug", help="Show the full traceback of an error.", envvar="LITEBERT_DEBUG"
    ),
    models: Path | None = typer.Option(
        None,
        "--models",
        help="Folder of named encoders, instead of those that come with litebert.",
        envvar="LITEBERT_MODELS",
    ),
) -> None:
    """Options before the command."""
    del version, debug  # handled by the callback above and by FaultGroup
    if models is not None:
        from litebert.models import set_folder

        set_folder(models)


app.command("train")(train.train)
app.command("tune")(tune.tune)
app.command("prepare")(prepare.prepare)
app.command("pretrain")(pretrain.pretrain)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("glue")(glue.glue)
app.command("embed")(embed.embed)
app.command("search")(search.search)
app.command("fill")(fill.fill)
app.command("quickstart")(quickstart.quickstart)
app.command("info")(info.info)
app.command("compare")(compare.compare)
app.command("bench")(bench.bench)
app.command("doctor")(doctor.doctor)
app.command("convert")(convert.convert)
app.command("fold")(fold.fold)
app.command("distill")(distill.distill)
app.command("exits")(exits.exits)
app.command("quantize")(quantize.quantize)
app.command("prune")(prune.prune)
app.command("export")(export.export)
app.command("serve")(serve.serve)
app.command("vocab")(vocab.vocab)
app.add_typer(data.app, name="data")


def main() -> None:
    """Entry point of the `litebert` script."""
    prepare_streams()
    app(prog_name="litebert")
