"""Documents from a text column of a Parquet file, a few hundred rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from litebert.data.compressed import MAX_RATIO
from litebert.data.corpus.assemble import Piece, cut_text
from litebert.data.corpus.faults import Refused, Reporter

__all__ = ["parquet_documents"]

_BATCH_ROWS: Final = 64
_BUFFER_BYTES: Final = 1 << 20
_RATIO_FLOOR: Final = 16 << 20
_MAX_GROUP_BYTES: Final = 1 << 30


def parquet_documents(path: Path, field: str, max_chars: int, report: Reporter) -> Iterator[Piece]:
    """Yield the text of each row; the line of a document is its 1-based record.

    Raises:
        Refused: damaged, no such column, not text, or it unpacks to too much.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    damage = (pa.ArrowException, OSError, OverflowError, MemoryError, ValueError)
    try:
        with pq.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            _check_column(file.schema_arrow, field)
            limit = max(_RATIO_FLOOR, MAX_RATIO * path.stat().st_size)
            _check_groups(file.metadata, file.schema_arrow.get_field_index(field), limit)
            number = unpacked = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[field]):
                unpacked += int(batch.nbytes)
                if unpacked > limit:
                    raise _too_large(unpacked, limit)
                for value in batch.column(0).to_pylist():
                    number += 1
                    yield from _cell(value, number, max_chars, report)
    except damage as error:
        if isinstance(error, UnicodeDecodeError):
            raise
        raise Refused(
            "damaged",
            f"the Parquet data are damaged or use something unknown ({error}); write them again",
        ) from error


def _cell(value: Any, number: int, max_chars: int, report: Reporter) -> Iterator[Piece]:
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            report.fail("bad bytes", "the cell holds bytes that are not UTF-8", line=number)
            value = ""
    text = "" if value is None else str(value)
    yield from cut_text(text.replace("\r\n", "\n").replace("\r", "\n"), max_chars, report, number)


def _check_column(schema: Any, field: str) -> None:
    import pyarrow as pa

    kinds = {name: schema.field(index).type for index, name in enumerate(schema.names)}
    there = ", ".join(f"{str(name)[:40]!r} ({kind})" for name, kind in list(kinds.items())[:12])
    if schema.names.count(field) != 1:
        raise Refused(
            "no text field",
            f"no single column {field!r}; there are: {there}. Tell one with --text-field",
        )
    kind = kinds[field]
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary,
             pa.types.is_large_binary, pa.types.is_string_view)  # fmt: skip
    if not any(test(kind) for test in tests):
        raise Refused(
            "no text field", f"column {field!r} holds {kind}, not text; there are: {there}"
        )


def _check_groups(metadata: Any, column: int, limit: int) -> None:
    sizes = [
        max(int(metadata.row_group(group).column(column).total_uncompressed_size), 0)
        for group in range(metadata.num_row_groups)
        if column < metadata.num_columns
    ]
    if sum(sizes) > limit:
        raise _too_large(sum(sizes), limit)
    if sizes and max(sizes) > _MAX_GROUP_BYTES:
        raise Refused(
            "unpacks to too much",
            f"one row group unpacks to {max(sizes):,} bytes, allowed are {_MAX_GROUP_BYTES:,}; "
            "write the file with smaller row groups",
        )


def _too_large(found: int, limit: int) -> Refused:
    return Refused(
        "unpacks to too much",
        f"the text unpacks to {found:,} bytes or more, allowed are {limit:,} "
        f"({MAX_RATIO} times the file); write it without compression",
    )
