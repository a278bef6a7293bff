"""A model as a folder for any web host, whatever it is now: an export, a model folder, a run, a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from litebert.errors import MissingDependencyError, SettingsError
from litebert.export.web.manifest import model_name
from litebert.export.web.site import checked_site, write_site
from litebert.models import locate
from litebert.runtime.exported import is_exported

if TYPE_CHECKING:
    from litebert.export.web.site import Site

__all__ = ["export_web", "site_lines"]


def export_web(
    folder: Path,
    out: Path,
    *,
    precisions: Sequence[str] = (),
    name: str | None = None,
    overwrite: bool = False,
    on_start: Callable[[Path], None] = lambda _: None,
) -> Site:
    """Write the page with a model that runs in the browser; see `litebert.export.web.site.write_site`.

    Args:
        folder: an export, a model folder, a run folder, or the name of an encoder of the package.
        out: where to.
        precisions: one number format, int8 or fp32; none: int8 where it was exported.
        name: of the model on the page; None: that of the folder.
        overwrite: replace an older one.
        on_start: told of the export that is made first, if one is needed.

    Raises:
        SettingsError: what is asked for makes no sense.
        MissingDependencyError: the folder is no export, and what exporting needs is not installed.
        CheckpointError, ExportError: as `write_site`, and as exporting.
    """
    if len(precisions) > 1 or any("," in word for word in precisions):
        raise SettingsError(
            f"precision {', '.join(precisions)}: the page runs one graph; give int8 or fp32"
        )
    source = locate(folder)
    checked_site(out, source, overwrite=overwrite)  # before an export that may take a minute
    if not is_exported(source):
        source = _exported(source, on_start)
    return write_site(
        source,
        out,
        precision=precisions[0] if precisions else "auto",
        name=name or model_name(folder),
        overwrite=overwrite,
    )


def _exported(folder: Path, on_start: Callable[[Path], None]) -> Path:
    try:
        from litebert.recipes.export_cache import cached_export

        return cached_export(folder, on_start)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            error.name or "torch", extra="export", purpose=f"the folder {folder}"
        ) from error


def site_lines(site: Site) -> list[str]:
    """Return what a person reads of a page that was written."""
    total = sum(site.files.values())
    return [
        f"{site.path}: {site.name}, {site.precision}, {len(site.files)} files of {total / 1e6:.1f} MB, "
        f"model and tokenizer {site.model_bytes / 1e6:.1f} MB",
        f"answers {', '.join(site.routes)}",
        f"try it:  python -m http.server --directory {site.path}",
    ]
