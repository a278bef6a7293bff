"""`litebert export TARGET FOLDER --out DIR`: a model as a file, or as a page, that runs without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from litebert.export.base import ExportedFile


def export(
    target: str = typer.Argument(
        metavar="TARGET", help="What for: onnx, openvino, executorch, or web: a page for any host."
    ),
    folder: Path = typer.Argument(
        metavar="FOLDER",
        help="Model folder or run folder; for web also an export, which needs no torch.",
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Folder of the export; must be new."),
    precision: list[str] | None = typer.Option(
        None,
        "--precision",
        help="fp32, fp16, int8; several with commas. Default: fp32,int8; for web int8.",
    ),
    plain: bool = typer.Option(
        True,
        "--plain/--no-plain",
        help="Also write graphs with standard inputs, for other runtimes.",
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace an older export in --out."),
    min_agreement: float = typer.Option(
        0.95, "--min-agreement", help="Least cosine of int8 outputs with torch's, 0 to 1."
    ),
    name: str | None = typer.Option(
        None, "--name", help="Of web: name of the model on the page. [that of the folder]"
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON."),
) -> None:
    """Export a model, compare every file with torch, and write the folder only if all agree.

    Each stored weight is written once, however many depths share it. Run the result with
    `litebert predict`, or from Python with litebert.runtime; neither needs torch.

    `litebert export web FOLDER --out DIR` writes a page that runs the int8 graph in the browser of
    whoever opens it: copy DIR to any web host, in any path; no text leaves the browser.
    """
    from litebert.cli.output import say, show, show_json

    if target == "web":
        _export_web(folder, out, precision or (), name, overwrite=overwrite, as_json=as_json)
        return
    if name is not None:
        from litebert.errors import SettingsError

        raise SettingsError("--name is of the page: litebert export web FOLDER --name NAME")
    from litebert.recipes.export import export_model, report_lines

    def passed(item: ExportedFile) -> None:
        say(f"checked   {item.name}: {item.difference.probes} batches beside torch")

    report = export_model(
        target,
        folder,
        out,
        precisions=precision or (),
        plain=plain,
        overwrite=overwrite,
        least_agreement=min_agreement,
        on_file=passed,
    )
    if as_json:
        show_json(report.to_json() | {"out": str(out)})
    else:
        show("\n".join(report_lines(report)))


def _export_web(
    folder: Path,
    out: Path,
    precisions: Sequence[str],
    name: str | None,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    from litebert.cli.output import say, show, show_json
    from litebert.recipes.export_web import export_web, site_lines

    def on_start(place: Path) -> None:
        say(f"exporting {folder} to {place}; once, it may take a minute")

    site = export_web(
        folder, out, precisions=precisions, name=name, overwrite=overwrite, on_start=on_start
    )
    if as_json:
        show_json(site.to_json() | {"out": str(out)})
    else:
        show("\n".join(site_lines(site)))
