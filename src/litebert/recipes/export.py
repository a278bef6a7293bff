"""Export with words: what is asked for, and the table of what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from litebert.errors import MissingDependencyError, SettingsError
from litebert.recipes.run_folder import model_folder

if TYPE_CHECKING:
    from litebert.export.base import ExportedFile
    from litebert.export.folder import ExportReport

__all__ = ["export_model", "file_line", "report_lines"]

_PACKAGES = {"onnx": ("onnx", "export")}
_HEADER = (
    f"{'file':<32}  {'MB':>8}  {'difference':>10}  {'agreement':>9}  {'worst token':>11}  ms at 128"
)


def export_model(
    target: str,
    folder: Path,
    out: Path,
    *,
    precisions: Sequence[str] = (),
    plain: bool = True,
    overwrite: bool = False,
    least_agreement: float = 0.95,
    on_file: Callable[[ExportedFile], None] | None = None,
) -> ExportReport:
    """Export a model folder and prove it; see `litebert.export.folder.export_and_verify`.

    Args:
        target: name of an export target.
        folder: a model folder, or a run folder: its best model.
        out: where to.
        precisions: number formats, each alone or several with commas; none: fp32 and int8, as far as
            the target has them.
        plain: whether to write the graphs for other runtimes too.
        overwrite: replace an older export.
        least_agreement: cosine of int8 outputs with torch's, below which nothing is written, 0 to 1.
        on_file: told of each model that passed.

    Raises:
        SettingsError: what is asked for makes no sense.
        MissingDependencyError: a package is missing.
        CheckpointError, ExportError: as `export_and_verify`.
    """
    wanted = [name.strip() for given in precisions for name in given.split(",")]
    if len(set(wanted)) != len(wanted):
        raise SettingsError(f"precision {', '.join(wanted)}: name each once")
    if not 0.0 <= least_agreement <= 1.0:
        raise SettingsError(f"min-agreement is {least_agreement:g}, allowed are 0 to 1")
    try:
        from litebert.export.base import Options
        from litebert.export.folder import export_and_verify
        from litebert.export.targets import EXPORTERS
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        name, extra = _PACKAGES[package]
        raise MissingDependencyError(name, extra=extra, purpose="litebert export") from error
    known = EXPORTERS.get(target)().precisions
    chosen = wanted or [name for name in ("fp32", "int8") if name in known]
    options = Options(tuple(chosen), plain, least_agreement)
    model = model_folder(folder)
    return export_and_verify(target, model, out, options, overwrite=overwrite, on_file=on_file)


def file_line(item: ExportedFile) -> str:
    """Return one exported model as a line of the table."""
    cosine = f"{item.difference.least_cosine:.5f}" if item.difference.cosines[1] else "-"
    return (
        f"{item.name:<32}  {item.bytes / 1e6:>8.2f}  {item.difference.max_difference:>10.1e}  "
        f"{item.difference.agreement:>9.5f}  {cosine:>11}  {item.milliseconds:.1f}"
    )


def report_lines(report: ExportReport) -> list[str]:
    """Return the table of an export."""
    head = report.head or "no head"
    return [
        f"{report.path}: {report.parameters:,} parameters, depth {report.depth}, {head}",
        _HEADER,
        *(file_line(item) for item in report.files),
        *report.notes,
    ]
