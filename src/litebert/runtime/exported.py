"""What an export left: the folder, its list of graphs with digests, and which of them to use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from litebert.errors import CheckpointError, SettingsError
from litebert.files import check_file, read_json
from litebert.runtime.onnx_file import MAX_BYTES

__all__ = ["EXPORT_FILE", "PRECISIONS", "ExportedFolder", "ExportedGraph", "is_exported"]

EXPORT_FILE: Final = "export.json"
FORMAT_VERSION: Final = 1
MAX_JSON_BYTES: Final = 4_000_000
PRECISIONS: Final = ("int8", "fp16", "fp32")
"""What `precision` may ask for; "auto" takes the first that was exported and verified, fp16 never."""
_AUTO: Final = ("int8", "fp32")
_CONFIG_FILE: Final = "config.json"


@dataclass(frozen=True, slots=True)
class ExportedGraph:
    """One packed graph of an export.

    Attributes:
        path: the file.
        precision: fp32, fp16 or int8.
        sha256: digest that it must have, hex.
    """

    path: Path
    precision: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ExportedFolder:
    """A folder that `litebert export onnx` made.

    Attributes:
        path: the folder.
        graphs: its packed graphs.
        config: content of `config.json`, unchecked.
    """

    path: Path
    graphs: tuple[ExportedGraph, ...]
    config: dict[str, Any]

    @classmethod
    def open(cls, source: Path) -> ExportedFolder:
        """Read the list of an export.

        Args:
            source: the folder, or one of its graphs, which then is the only one.

        Raises:
            CheckpointError: no export, a list that cannot be used, or a graph that it does not name.
        """
        folder = _folder_of(source)
        values = read_json(folder / EXPORT_FILE, max_bytes=MAX_JSON_BYTES)
        graphs = _graphs(values, folder)
        if source != folder:
            graphs = tuple(graph for graph in graphs if graph.path.resolve() == source.resolve())
            if not graphs:
                raise CheckpointError(
                    f"is no packed graph that {folder / EXPORT_FILE} names; give the folder",
                    path=source,
                )
        config = read_json(folder / _CONFIG_FILE, max_bytes=MAX_JSON_BYTES)
        return cls(folder, graphs, config)

    def choose(self, precision: str = "auto") -> ExportedGraph:
        """Return the graph of a precision.

        Raises:
            SettingsError: an unknown precision, or one that was not exported.
        """
        wanted = _AUTO if precision == "auto" else (precision,)
        if precision not in ("auto", *PRECISIONS):
            raise SettingsError(
                f"precision is {precision!r:.40}; allowed: auto, {', '.join(PRECISIONS)}"
            )
        by_name = {graph.precision: graph for graph in self.graphs}
        for name in wanted:
            if name in by_name:
                return by_name[name]
        if precision == "auto" and self.graphs:
            return self.graphs[0]
        raise SettingsError(
            f"{self.path} has no graph of precision {precision}; there is: "
            f"{', '.join(by_name) or 'none'}; export it: litebert export onnx FOLDER"
        )

    def size(self, name: str) -> int:
        """Return a number of `config.json`.

        Raises:
            CheckpointError: it is missing or no whole number above 0.
        """
        value = self.config.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 31:
            raise CheckpointError(
                f"{name} is {value!r:.40}, expected a whole number above 0",
                path=self.path / _CONFIG_FILE,
            )
        return value


def is_exported(source: Path) -> bool:
    """Tell whether a path is an export, or a graph, to be run without torch."""
    return source.suffix == ".onnx" or (source / EXPORT_FILE).is_file()


def _folder_of(source: Path) -> Path:
    if source.is_dir():
        return source
    if check_file(source) is None:
        raise CheckpointError("there is no such file or folder; check the path", path=source)
    for folder in (source.parent, source.parent.parent):
        if (folder / EXPORT_FILE).is_file():
            return folder
    raise CheckpointError(
        f"there is no {EXPORT_FILE} beside it or one folder up, so neither tokenizer nor task are "
        "known; give the folder that `litebert export onnx` made",
        path=source,
    )


def _graphs(values: Mapping[str, Any], folder: Path) -> tuple[ExportedGraph, ...]:
    path = folder / EXPORT_FILE
    version = values.get("format_version")
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"format_version is {version!r:.40}, this litebert reads {FORMAT_VERSION}; export again",
            path=path,
        )
    files = values.get("files")
    if not isinstance(files, dict):
        raise CheckpointError("it names no files; export the model again", path=path)
    found: list[ExportedGraph] = []
    for name, entry in cast("dict[str, Any]", files).items():
        if not isinstance(entry, dict):
            raise CheckpointError(f"the entry {name!r:.60} is no object; export again", path=path)
        facts = cast("dict[str, Any]", entry)
        if facts.get("form") != "packed":
            continue
        precision, digest = facts.get("precision"), facts.get("sha256")
        if precision not in PRECISIONS or not isinstance(digest, str):
            raise CheckpointError(
                f"the entry {name!r:.60} has the precision {precision!r:.40} and the sha256 "
                f"{digest!r:.80}; export the model again",
                path=path,
            )
        found.append(ExportedGraph(_inside(folder, name, path), precision, digest))
    return tuple(found)


def _inside(folder: Path, name: str, path: Path) -> Path:
    """The file of that name, which must lie in the folder or one below."""
    parts = name.split("/")
    is_plain = 1 <= len(parts) <= 2 and all(
        part not in ("", ".", "..") and part.isprintable() and not set(part) & set('\\:*?"<>|')
        for part in parts
    )
    if not is_plain:
        raise CheckpointError(
            f"it names the file {name!r:.80}, which is not in the folder", path=path
        )
    target = folder.joinpath(*parts)
    if not target.resolve().is_relative_to(folder.resolve()):
        raise CheckpointError(f"{name!r:.80} leads out of the folder", path=path)
    check_file(target, max_bytes=MAX_BYTES)
    return target
