"""Integer weights in a model folder: how they lie in `model.safetensors`, and reading them.

A weight NAME of a quantized model is stored as `NAME.int8`, or `NAME.int4` with two integers in each
byte, beside `NAME.scales`. `config.json` says `model_type` litebert and holds `litebert.quantization`,
so no reader of float weights takes the integers for weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.checkpoint.files import CONFIG_FILE
from litebert.checkpoint.int8 import (
    INT4_LIMIT,
    INT8_LIMIT,
    QuantizedMatrix,
    pack_int4,
    unpack_int4,
)
from litebert.checkpoint.weights import TensorEntry, WeightFiles, find_weights, read_into
from litebert.errors import CheckpointError
from litebert.model.config import AlbertConfig

if TYPE_CHECKING:
    from litebert.model.quantization import Quantization

__all__ = [
    "QuantizedEntry",
    "is_table",
    "join_quantized",
    "read_matrix",
    "read_quantized",
    "stored_tensors",
]

INT8: Final = ".int8"
INT4: Final = ".int4"
SCALES: Final = ".scales"
_TABLES: Final = (
    "embeddings.token.weight",
    "embeddings.position.weight",
    "embeddings.token_type.weight",
    "relative.table.weight",
)
_TYPES: Final = {INT8: "I8", INT4: "U8"}


@dataclass(frozen=True, slots=True)
class QuantizedEntry(TensorEntry):
    """Where the integers of a weight lie; `shape` is that of the weight, `name` its plain name."""

    scales: TensorEntry
    group: int
    limit: int


def stored_tensors(name: str, matrix: QuantizedMatrix) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays that a file holds for the weight called `name`."""
    if matrix.limit == INT4_LIMIT:
        return {name + INT4: pack_int4(matrix.values), name + SCALES: matrix.scales}
    return {name + INT8: matrix.values, name + SCALES: matrix.scales}


def join_quantized(files: WeightFiles, config: AlbertConfig) -> WeightFiles:
    """Return the files with one entry for each pair of integers and scales, under the plain name.

    Raises:
        CheckpointError: no integers although the configuration promises them; integers without
            scales or the other way round; wrong types or shapes; a weight that is there twice.
    """
    quantization = config.litebert.quantization
    if quantization is None:
        return files
    plain = dict(files.entries)
    joined: dict[str, TensorEntry] = {}
    for stored, entry in files.entries.items():
        kind = next((kind for kind in _TYPES if stored.endswith(kind)), None)
        if kind is None:
            continue
        name = stored.removesuffix(kind)
        scales = files.entries.get(name + SCALES)
        if name in joined or name in files.entries:
            raise CheckpointError(f"weights given twice: {name!r:.120}", path=files.path)
        if scales is None:
            raise CheckpointError(
                f"the integers {stored!r:.120} have no scales {name + SCALES!r:.120}; the file is "
                "damaged, quantize the model again",
                path=files.path,
            )
        joined[name] = _entry(name, entry, scales, config, quantization)
        del plain[stored], plain[name + SCALES]
    left = [name for name in plain if name.endswith(SCALES)]
    if left:
        raise CheckpointError(f"scales without integers: {left[0]!r:.120}", path=files.path)
    if not joined:
        raise CheckpointError(
            f"{CONFIG_FILE} says that weights are quantized, but there are no integers; the two do "
            "not belong together",
            path=files.path,
        )
    return replace(files, entries=plain | joined)


def read_matrix(entry: QuantizedEntry) -> QuantizedMatrix:
    """Read integers and scales.

    Raises:
        CheckpointError: scales that are no positive numbers, integers beyond the limit, or a file that
            changed meanwhile.
    """
    rows, columns = entry.shape
    is_packed = entry.dtype == "U8"
    raw: Any = np.empty((rows, (columns + 1) // 2 if is_packed else columns), np.uint8)
    read_into(entry, memoryview(raw).cast("B"))
    values = unpack_int4(raw, columns) if is_packed else raw.view(np.int8)
    scales: Any = np.empty(entry.scales.shape, np.float32)
    read_into(entry.scales, memoryview(scales).cast("B"))
    if not bool(np.all((scales > 0) & (scales < np.inf))):
        raise CheckpointError(
            f"the scales of {entry.name!r:.120} must be positive and finite; the file is damaged",
            path=entry.path,
        )
    if values.size and not -entry.limit <= int(values.min()) <= int(values.max()) <= entry.limit:
        raise CheckpointError(
            f"the integers of {entry.name!r:.120} go from {values.min()} to {values.max()}, the "
            f"configuration allows magnitudes up to {entry.limit}",
            path=entry.path,
        )
    return QuantizedMatrix(values, scales, entry.group, entry.limit)


def read_quantized(folder: Path) -> dict[str, QuantizedMatrix]:
    """Return the stored integers of a quantized folder by the name of our state dict; empty for others.

    For exporters, which then multiply these integers and do not round again. The names have no
    `model.` prefix, for example `encoder.attentions.0.query.weight`.

    Raises:
        CheckpointError: a folder that cannot be used.
    """
    config = AlbertConfig.load(folder)
    files = join_quantized(find_weights(folder), config)
    return {
        name.removeprefix("model."): read_matrix(entry)
        for name, entry in files.entries.items()
        if isinstance(entry, QuantizedEntry)
    }


def is_table(name: str) -> bool:
    """Return whether a weight is a table that rows are taken from, not a matrix that is multiplied."""
    return name.removeprefix("model.").removeprefix("encoder.") in _TABLES


def quantized_bytes(entries: Mapping[str, TensorEntry]) -> int:
    """Return the bytes of integers and scales among `entries`."""
    found = (entry for entry in entries.values() if isinstance(entry, QuantizedEntry))
    return sum(entry.size + entry.scales.size for entry in found)


def _entry(
    name: str,
    entry: TensorEntry,
    scales: TensorEntry,
    config: AlbertConfig,
    quantization: Quantization,
) -> QuantizedEntry:
    is_packed = entry.name.endswith(INT4)
    wanted = _TYPES[INT4 if is_packed else INT8]
    shape = entry.shape
    if len(shape) == 2 and is_packed:
        shape = (shape[0], config.embedding_size)
    if (
        entry.dtype != wanted
        or len(shape) != 2
        or not all(shape)
        or (is_packed and entry.shape[1] != (shape[1] + 1) // 2)
    ):
        raise CheckpointError(
            f"{entry.name!r:.120} is {entry.dtype} of shape {list(entry.shape)}; expected a matrix of "
            f"{wanted}",
            path=entry.path,
        )
    group = min(quantization.embedding_group, shape[1]) if is_packed else shape[1]
    if scales.dtype != "F32" or scales.shape != (shape[0], -(-shape[1] // group)):
        raise CheckpointError(
            f"{scales.name!r:.120} is {scales.dtype} of shape {list(scales.shape)}; expected F32 of "
            f"{[shape[0], -(-shape[1] // group)]}",
            path=entry.path,
        )
    limit = quantization.weight_limit
    if is_packed or is_table(name):
        limit = INT4_LIMIT if is_packed else INT8_LIMIT
    return QuantizedEntry(
        name=name,
        dtype=entry.dtype,
        shape=shape,
        begin=entry.begin,
        size=entry.size,
        path=entry.path,
        scales=scales,
        group=group,
        limit=limit,
    )
