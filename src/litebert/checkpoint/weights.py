"""The safetensors format, read with suspicion.

A file is: header length (8 bytes, little endian), JSON header, tensors back to back. Everything
the header claims is checked against the file before any memory is reserved for a tensor.
Source: format description of huggingface/safetensors (README, "Format").
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from litebert.checkpoint.files import INDEX_FILE, WEIGHTS_FILE, is_plain_name
from litebert.errors import CheckpointError
from litebert.files import check_file, open_file, read_json

__all__ = [
    "ITEM_BYTES",
    "MAX_HEADER_BYTES",
    "TensorEntry",
    "WeightFiles",
    "find_weights",
    "read_header",
    "read_into",
]

MAX_HEADER_BYTES: Final = 100_000_000
"""Limit of the format."""
MAX_INDEX_BYTES: Final = 16 << 20
MAX_SHARDS: Final = 1000
MAX_NAME_LENGTH: Final = 512
MAX_DIMENSIONS: Final = 8

ITEM_BYTES: Final[dict[str, int]] = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2,
    "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
    "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
"""Type name of the format -> bytes of one number."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """Where one tensor lies."""

    name: str
    dtype: str
    """Type name of the format, for example F32."""
    shape: tuple[int, ...]
    begin: int
    """First byte, counted from the start of the file."""
    size: int
    """Length in bytes."""
    path: Path


@dataclass(frozen=True, slots=True)
class WeightFiles:
    """All tensors of a model folder, in one file or several."""

    entries: dict[str, TensorEntry]
    metadata: dict[str, str]
    """Free text of the header; from the first file if there are several."""
    path: Path
    """The file to name in messages: the weights, or their index."""


def find_weights(folder: Path, *, max_header_bytes: int = MAX_HEADER_BYTES) -> WeightFiles:
    """Read the headers of a model folder's weights: `model.safetensors`, or the shards of an index.

    Raises:
        CheckpointError: none there, or any fault of a header or of the index.
    """
    single, index = folder / WEIGHTS_FILE, folder / INDEX_FILE
    if check_file(single) is not None:
        entries, metadata = read_header(single, max_header_bytes=max_header_bytes)
        return WeightFiles(entries, metadata, single)
    if check_file(index) is not None:
        return _read_shards(folder, index, max_header_bytes)
    raise CheckpointError(f"has no {WEIGHTS_FILE}; {_advice(folder)}", path=folder)


def read_header(
    path: Path, *, max_header_bytes: int = MAX_HEADER_BYTES
) -> tuple[dict[str, TensorEntry], dict[str, str]]:
    """Return the tensors of a safetensors file by name, and its metadata. Reads no tensor.

    Raises:
        CheckpointError: not a safetensors file, or a header that its file does not bear out.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = _header_length(file, size, min(max_header_bytes, MAX_HEADER_BYTES), path)
        table = _parse(_read_exactly(file, length, path), path)
    metadata = table.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(
        isinstance(value, str) for value in cast(dict[str, Any], metadata).values()
    ):
        raise CheckpointError("header: __metadata__ is no table of texts", path=path)
    entries = {
        name: _entry(name, value, start=8 + length, path=path) for name, value in table.items()
    }
    _check_extents(entries.values(), start=8 + length, end=size, path=path)
    return entries, cast(dict[str, str], metadata)


def read_into(entry: TensorEntry, buffer: memoryview) -> None:
    """Fill `buffer` (exactly `entry.size` bytes) with the bytes of a tensor.

    Read, not mapped: a file that another process cuts short while it is mapped kills the process;
    here it is an error, and the model does not change when the file does.

    Raises:
        CheckpointError: the file has become shorter or unreadable since its header was read.
    """
    with open_file(entry.path) as file:
        try:
            file.seek(entry.begin)
            rest = buffer.cast("B")
            while rest:
                count = cast(int, file.readinto(rest))  # pyright: ignore[reportAttributeAccessIssue]
                if not count:
                    raise CheckpointError(
                        f"ends in the middle of tensor {entry.name!r}", path=entry.path
                    )
                rest = rest[count:]
        except OSError as error:
            raise CheckpointError(
                f"tensor {entry.name!r} cannot be read: {error.strerror}", path=entry.path
            ) from error


def _advice(folder: Path) -> str:
    pickles = [name for name in ("pytorch_model.bin", "model.pt") if (folder / name).exists()]
    if pickles:
        return (
            f"it has {pickles[0]}, a pickle, which may run foreign code when it is opened; "
            f"run `litebert convert` on it once"
        )
    if any((folder / name).exists() for name in ("tf_model.h5", "checkpoint")) or any(
        folder.glob("*.ckpt*.index")
    ):
        return "it has TensorFlow weights; run `litebert convert` on it once"
    return "save the model in the safetensors format"


def _header_length(file: BinaryIO, size: int, limit: int, path: Path) -> int:
    if size < 8:
        raise CheckpointError(f"has {size} bytes, too few for a safetensors file", path=path)
    (length,) = struct.unpack("<Q", _read_exactly(file, 8, path))
    if length > size - 8:
        raise CheckpointError(
            f"claims a header of {length:,} bytes but has {size:,} in all; "
            "not a safetensors file, or cut short",
            path=path,
        )
    if length > limit:
        raise CheckpointError(
            f"claims a header of {length:,} bytes, allowed for this model are {limit:,}", path=path
        )
    return length


def _read_exactly(file: BinaryIO, length: int, path: Path) -> bytes:
    try:
        data = file.read(length)
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error.strerror}", path=path) from error
    if len(data) != length:
        raise CheckpointError("ends in the middle of its header", path=path)
    return data


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            raise CheckpointError("header: a name occurs twice", path=path)
        return table

    try:
        table = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"header is not valid JSON: {error}", path=path) from error
    if not isinstance(table, dict):
        raise CheckpointError("header is not a JSON object", path=path)
    return cast(dict[str, Any], table)


def _entry(name: str, value: Any, *, start: int, path: Path) -> TensorEntry:
    shown = name if len(name) <= 80 else name[:77] + "..."
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise CheckpointError(
            f"header: tensor name {shown!r} is empty, too long or unprintable", path=path
        )
    if any(letter in name for letter in "/\\:") or ".." in name:
        raise CheckpointError(f"header: tensor name {shown!r} looks like a path", path=path)
    if not isinstance(value, dict) or set(cast(dict[str, Any], value)) != {
        "dtype",
        "shape",
        "data_offsets",
    }:
        raise CheckpointError(
            f"header: tensor {shown!r} needs exactly dtype, shape and data_offsets", path=path
        )
    table = cast(dict[str, Any], value)
    dtype, shape, offsets = table["dtype"], table["shape"], table["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise CheckpointError(
            f"header: tensor {shown!r} has the unknown type {dtype!r:.40}", path=path
        )
    if not _is_counts(shape) or len(shape) > MAX_DIMENSIONS:
        raise CheckpointError(
            f"header: tensor {shown!r} has the impossible shape {shape!r:.80}", path=path
        )
    if not _is_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(
            f"header: tensor {shown!r} has the impossible offsets {offsets!r:.80}", path=path
        )
    size = ITEM_BYTES[dtype] * prod(shape)
    if size != offsets[1] - offsets[0]:
        raise CheckpointError(
            f"header: tensor {shown!r} of shape {shape!r:.80} and type {dtype} needs {size:,} bytes, "
            f"its offsets span {offsets[1] - offsets[0]:,}",
            path=path,
        )
    return TensorEntry(name, dtype, tuple(shape), start + offsets[0], size, path)


def _is_counts(values: Any) -> bool:
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value < 1 << 48 for value in cast(list[Any], values)
    )


def _check_extents(entries: Iterable[TensorEntry], *, start: int, end: int, path: Path) -> None:
    """The tensors must fill the file: no overlap, no gap, nothing beyond the end."""
    position = start
    for entry in sorted(entries, key=lambda entry: (entry.begin, entry.size)):
        if entry.begin != position:
            fault = "overlaps another tensor" if entry.begin < position else "follows a gap"
            raise CheckpointError(f"header: tensor {entry.name!r} {fault}", path=path)
        position += entry.size
        if position > end:
            raise CheckpointError(
                f"tensor {entry.name!r} would end at byte {position:,}, the file has {end:,}; cut short?",
                path=path,
            )
    if position != end:
        raise CheckpointError(
            f"{end - position:,} bytes follow the last tensor; the file is damaged", path=path
        )


def _read_shards(folder: Path, index: Path, max_header_bytes: int) -> WeightFiles:
    table = read_json(index, max_bytes=MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(table, dict) or not table:
        raise CheckpointError("weight_map is missing or empty", path=index)
    weight_map = cast(dict[str, Any], table)
    shards = list(dict.fromkeys(_shard_names(weight_map, index)))
    if len(shards) > MAX_SHARDS:
        raise CheckpointError(
            f"names {len(shards):,} files, allowed are {MAX_SHARDS:,}", path=index
        )
    entries: dict[str, TensorEntry] = {}
    first_metadata: dict[str, str] | None = None
    for shard in shards:
        found, metadata = read_header(folder / shard, max_header_bytes=max_header_bytes)
        first_metadata = metadata if first_metadata is None else first_metadata
        for name, entry in found.items():
            if weight_map.get(name) != shard:
                raise CheckpointError(
                    f"{shard} holds tensor {name!r}, which the index does not place there",
                    path=index,
                )
            entries[name] = entry
    missing = [name for name in weight_map if name not in entries]
    if missing:
        raise CheckpointError(
            f"{len(missing)} tensors are not where the index says, first {missing[0]!r:.80}",
            path=index,
        )
    return WeightFiles(entries, first_metadata or {}, index)


def _shard_names(weight_map: Mapping[str, Any], index: Path) -> Iterator[str]:
    for name in weight_map.values():
        if (
            not isinstance(name, str)
            or not is_plain_name(name)
            or not name.endswith(".safetensors")
        ):
            raise CheckpointError(
                f"names the file {name!r:.80}; allowed are plain names that end in .safetensors",
                path=index,
            )
        yield name
