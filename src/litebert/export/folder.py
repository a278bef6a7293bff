"""The folder of an export: verified first, then written whole beside its place, then put there."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from litebert.checkpoint import fs
from litebert.checkpoint.files import CARD_FILE, CONFIG_FILE, TASK_FILE, TOKENIZER_FILES
from litebert.errors import CheckpointError, ExportError, SettingsError
from litebert.export.base import EXPORTERS, ExportedFile, Options, verify
from litebert.export.onnx.source import Source, load_source
from litebert.export.place import checked_place
from litebert.export.verify import Referee
from litebert.files import check_file, read_bytes
from litebert.model.config import AlbertConfig
from litebert.tasks.exit_file import EXIT_FILE

__all__ = ["EXPORT_FILE", "ExportReport", "export_and_verify"]

EXPORT_FILE: Final = "export.json"
FORMAT_VERSION: Final = 1
_MAX_TEXT: Final = 4 << 20
_COPIED: Final = {
    CONFIG_FILE: _MAX_TEXT,
    TASK_FILE: _MAX_TEXT,
    CARD_FILE: _MAX_TEXT,
    EXIT_FILE: _MAX_TEXT,
}
"""Files of a model folder that an export holds as well, with their largest sizes, beside the tokenizer's."""

Say = Callable[[ExportedFile], None]


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export gave.

    Attributes:
        path: the folder.
        target: name of the exporter.
        head: head word of the model.
        depth: its depths.
        parameters: stored weights of the model.
        files: exported models.
        notes: what differs from the model folder on purpose, as sentences.
    """

    path: Path
    target: str
    head: str | None
    depth: int
    parameters: int
    files: tuple[ExportedFile, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the content of `export.json`, without digests."""
        return {
            "format_version": FORMAT_VERSION,
            "target": self.target,
            "head": self.head,
            "depth": self.depth,
            "parameters": self.parameters,
            "notes": list(self.notes),
            "files": {item.name: item.to_json() for item in self.files},
        }


def export_and_verify(
    target: str,
    folder: Path,
    out: Path,
    options: Options,
    *,
    overwrite: bool = False,
    on_file: Say | None = None,
) -> ExportReport:
    """Export a model folder, compare everything with torch, and only then write the result.

    After a crash at any moment `out` is as before, or complete.

    Args:
        target: registered name of an exporter.
        folder: the model folder.
        out: where to; new or empty, or with `overwrite` an older export.
        options: what is asked for.
        overwrite: replace an older export.
        on_file: told of each model that passed.

    Raises:
        SettingsError: an unknown target or number format, or a place that cannot be used.
        CheckpointError: any fault of the model folder; the disk refused.
        ExportError: something cannot be exported, or differs from torch.
        MissingDependencyError: a package is missing.
    """
    exporter = EXPORTERS.get(target)()
    unknown = [name for name in options.precisions if name not in exporter.precisions]
    if unknown or not options.precisions:
        raise SettingsError(
            f"precision {', '.join(unknown) or 'none'}: {target} writes {', '.join(exporter.precisions)}"
        )
    out = checked_place(out, folder, EXPORT_FILE, "an export", overwrite=overwrite)
    source = load_source(folder)
    referee = Referee(source.model)
    copied = _copied(folder)
    fs.make_folder(out.parent)
    temporary = out.with_name(f".{out.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        fs.make_folder(temporary)
        done: list[ExportedFile] = []
        entries: dict[str, Any] = {}
        for artifact in exporter.artifacts(source, options):
            passed = verify(artifact, exporter, referee, options)
            stamps: dict[str, str] = {}
            for name, data in artifact.files.items():
                fs.make_folder((temporary / name).parent)
                stamps[name] = fs.write_file(temporary / name, data).sha256
            entries[passed.name] = passed.to_json() | {"sha256": stamps.pop(passed.name)}
            if stamps:
                entries[passed.name]["beside"] = stamps
            done.append(passed)
            if on_file is not None:
                on_file(passed)
        report = _report(source, target, out, done)
        for name, data in copied.items():
            fs.write_file(temporary / name, data)
        values = report.to_json() | {"files": entries}
        text = json.dumps(values, indent=2, sort_keys=True, allow_nan=False) + "\n"
        fs.write_file(temporary / EXPORT_FILE, text.encode())
        for inner in sorted({(temporary / name).parent for name in entries}):
            fs.fsync_folder(inner)
        fs.replace_folder_atomic(temporary, out)
    except BaseException:
        with contextlib.suppress(CheckpointError):
            fs.remove_tree(temporary)
        raise
    return report


def _copied(folder: Path) -> dict[str, bytes]:
    """What an export holds of the model folder, besides its weights."""
    return {
        name: read_bytes(folder / name, max_bytes=limit)
        for name, limit in (_COPIED | TOKENIZER_FILES).items()
        if check_file(folder / name, max_bytes=limit) is not None
    }


def _report(source: Source, target: str, out: Path, done: list[ExportedFile]) -> ExportReport:
    if not done:
        raise ExportError(f"{target} gave nothing to write", path=out)
    parts = source.parts
    parameters = sum(value.size for value in parts.weights.values())
    depth = parts.config.num_hidden_layers
    notes = _notes(source, target, done)
    return ExportReport(out, target, parts.head, depth, parameters, tuple(done), notes)


def _notes(source: Source, target: str, done: list[ExportedFile]) -> tuple[str, ...]:
    """What a reader of the model folder would not expect."""
    notes: list[str] = []
    chosen = None
    if source.folder is not None:
        chosen = AlbertConfig.load(source.folder).litebert.quantization
    has_integers = any(item.precision == "int8" for item in done)
    if chosen is not None and chosen.activations == "static" and has_integers:
        notes.append(
            "The model folder has static ranges of activations; int8 files size each row as it comes "
            "instead, so answers differ from the folder's by their rounding."
        )
    if target == "executorch" and source.parts.has_exits:
        notes.append(
            "The file answers after all depths; the classifiers of earlier depths are left out, "
            "litebert export onnx has them."
        )
    return tuple(notes)
