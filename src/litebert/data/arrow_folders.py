"""Folders that the `datasets` library saved: Arrow shards with class names in their features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from litebert.data.compressed import MAX_BYTES, read_bytes
from litebert.data.encodings import decode_text
from litebert.data.jsonl import parse_json
from litebert.data.layouts import SPLIT_NAMES, list_folder
from litebert.data.readers import ReadOptions, Source
from litebert.data.rows import BadRows, Row, row_problem
from litebert.data.tables import Table
from litebert.errors import DataError


def is_arrow_folder(folder: Path) -> bool:
    """Tell whether the `datasets` library saved this folder (one split or several)."""
    return any((folder / name).is_file() for name in ("dataset_dict.json", "state.json"))


def read_arrow_folder(folder: Path, options: ReadOptions) -> Source:
    """Read a saved data set; class numbers become the names in its features.

    The line of a row is its record number in its split.

    Raises:
        DataError: a file is missing, damaged or too large, or there is no training split.
    """
    if (folder / "state.json").is_file():
        return Source(_read_split(folder, options))
    tables: dict[str, Table] = {}
    for split, names in SPLIT_NAMES.items():
        for name in names:
            if split not in tables and (folder / name / "state.json").is_file():
                tables[split] = _read_split(folder / name, options)
    if "train" not in tables:
        found = ", ".join(path.name for path in list_folder(folder) if path.is_dir()) or "none"
        raise DataError(f"no split named train (splits: {found}); name one split", path=folder)
    return Source(tables["train"], tables.get("eval"), tables.get("test"))


def _read_split(folder: Path, options: ReadOptions) -> Table:
    names = _class_names(folder)
    bad_rows = BadRows(folder, options.on_bad_row)
    rows: list[Row] = []
    columns: list[str] = []
    digest = sha256()
    number = 0
    for path in list_folder(folder):
        if path.suffix != ".arrow":
            continue
        for record in _read_shard(path, digest):
            number += 1
            columns = columns or list(record)
            for column, classes in names.items():
                record[column] = _name(record.get(column), classes)
            problem = row_problem(record)
            if problem is not None:
                bad_rows.add(number, problem[1], column=problem[0], path=path)
                continue
            rows.append(Row(record, path, number))
    if not rows:
        raise DataError(f"no usable rows ({len(bad_rows.skipped):,} skipped)", path=folder)
    return replace(
        Table(folder, columns, rows, bad_rows.skipped, "arrow", "", digest.hexdigest()),
        notes=("saved by the datasets library",),
    )


def _read_shard(path: Path, digest: Any) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"the file has more than {MAX_BYTES:,} bytes; split it", path=path)
        data = path.read_bytes()
        digest.update(data)
        if data.startswith(b"ARROW1"):
            yield from pa.ipc.open_file(pa.BufferReader(data)).read_all().to_pylist()
        else:
            for batch in pa.ipc.open_stream(pa.BufferReader(data)):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
        raise DataError(f"the Arrow data is damaged ({error}); save it again", path=path) from error


def _class_names(folder: Path) -> dict[str, list[str]]:
    """Return column -> class names of every class feature, from `dataset_info.json`."""
    path = folder / "dataset_info.json"
    if not path.is_file():
        return {}
    text, _ = decode_text(read_bytes(path).data, None, path)
    info: Any = parse_json(text, path)
    features: Any = info.get("features") if isinstance(info, dict) else None
    found: dict[str, list[str]] = {}
    if isinstance(features, dict):
        for column, feature in cast(dict[str, Any], features).items():
            match feature:
                case {"_type": "ClassLabel", "names": [*names]}:
                    found[column] = [str(name) for name in names]
                case _:
                    continue
    return found


def _name(value: Any, classes: list[str]) -> Any:
    if isinstance(value, int) and 0 <= value < len(classes):
        return classes[value]
    return None if value == -1 else value  # -1 is the library's mark for a withheld label
