"""Vectors to a file that appears only when it is whole: .npy, .safetensors, .jsonl, .parquet.

Vectors are written as they come, so that a corpus of any size needs the memory of one block.
"""

from __future__ import annotations

import io
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from litebert.checkpoint import fs
from litebert.checkpoint.leftovers import remove_leftovers
from litebert.errors import SettingsError

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["FORMS", "json_lines", "require_form", "write_vectors"]

FORMS: Final = (".npy", ".safetensors", ".jsonl", ".parquet")
DIGITS: Final = 7
"""Significant digits in JSON: all that float32 has."""
_CHUNK: Final = 1 << 20
_ALIGN: Final = 8

Blocks = Iterable[tuple[list[str], "Float[np.ndarray, 'n D']"]]
"""Texts with their vectors, in order."""


def require_form(path: Path) -> str:
    """Return the form that a file name asks for.

    Raises:
        SettingsError: another ending than those of `FORMS`, or a pipe where a file must be.
    """
    form = path.suffix.lower()
    if form not in FORMS:
        ending = f"ends in {form!r}" if form else "has no ending"
        raise SettingsError(f"--out {path} {ending}; allowed: {', '.join(FORMS)}")
    if form != ".jsonl" and fs.is_special(path):
        raise SettingsError(f"--out {path} is a pipe or a device, which {form} cannot go to")
    return form


def write_vectors(
    path: Path, blocks: Blocks, width: int, *, metadata: Mapping[str, str] | None = None
) -> int:
    """Write vectors, [N, width] of float32 in order, and return N.

    `.npy` and `.safetensors` (tensor `vectors`) hold the numbers alone; `.jsonl` and `.parquet` the
    columns `text` and `vector`.

    Args:
        path: the file; its ending is the form.
        blocks: gone through once.
        width: numbers of each vector.
        metadata: kept in the header of `.safetensors`.

    Raises:
        SettingsError: another ending.
        StorageError: the disk refused; an older file is untouched.
    """
    form = require_form(path)
    counter = _Counted(blocks)
    remove_leftovers(path)
    if form == ".jsonl":
        fs.write_output(
            path, (line.encode(errors="backslashreplace") for line in json_lines(counter))
        )
    elif form == ".parquet":
        _write_parquet(path, counter, width)
    else:
        header = _npy_header if form == ".npy" else _tensor_header
        _write_raw(path, counter, lambda: header(counter.rows, width, metadata or {}))
    return counter.rows


def json_lines(blocks: Blocks) -> Iterator[str]:
    """Yield one JSON object a line: `text` and `vector`; encode with "backslashreplace"."""
    for texts, vectors in blocks:
        for text, row in zip(texts, vectors, strict=True):
            numbers = [float(f"{value:.{DIGITS}g}") for value in row.tolist()]
            line = json.dumps({"text": text, "vector": numbers}, ensure_ascii=False)
            yield line + "\n"


class _Counted:
    """Blocks that are counted while they pass."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks, self.rows = blocks, 0

    def __iter__(self) -> Iterator[tuple[list[str], Float[np.ndarray, "n D"]]]:
        for texts, vectors in self._blocks:
            yield texts, vectors
            self.rows += len(texts)


def _write_raw(path: Path, blocks: _Counted, header: Callable[[], bytes]) -> None:
    """The number of rows stands in the header and is known at the end: rows wait in a file."""
    waiting = _beside(path, "rows")
    try:
        numbers = (vectors.astype("<f4").tobytes() for _, vectors in blocks)
        fs.write_file(waiting, numbers, named=path)

        def pieces() -> Iterator[bytes]:
            yield header()
            with waiting.open("rb") as file:
                yield from iter(lambda: file.read(_CHUNK), b"")

        fs.write_atomic(path, pieces())
    finally:
        fs.remove_tree(waiting)


def _npy_header(rows: int, width: int, _metadata: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)}
    )
    return buffer.getvalue()


def _tensor_header(rows: int, width: int, metadata: Mapping[str, str]) -> bytes:
    size = 4 * rows * width
    table: dict[str, Any] = {
        "__metadata__": dict(metadata),
        "vectors": {"dtype": "F32", "shape": [rows, width], "data_offsets": [0, size]},
    }
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % _ALIGN)
    return struct.pack("<Q", len(text)) + text


def _write_parquet(path: Path, blocks: _Counted, width: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("text", pa.string()), ("vector", pa.list_(pa.float32(), width))])
    waiting = _beside(path, "parquet")
    try:
        fs.write_file(
            waiting, b"", named=path
        )  # refuses where nothing can be written, in our words
        with pq.ParquetWriter(waiting, schema) as writer:
            for texts, vectors in blocks:
                flat = pa.array(vectors.reshape(-1), pa.float32())
                columns = [
                    pa.array([_clean(text) for text in texts], pa.string()),
                    pa.FixedSizeListArray.from_arrays(flat, width),
                ]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        fs.rename(waiting, path)
    finally:
        fs.remove_tree(waiting)
    fs.fsync_folder(path.parent)


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}-{os.getpid()}")


def _clean(text: str) -> str:
    """A text without lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")
