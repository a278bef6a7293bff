"""Parquet to records, with the sizes it declares checked before anything is unpacked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from litebert.data.compressed import MAX_BYTES, MAX_RATIO
from litebert.data.rows import BadRows, Row, row_problem
from litebert.errors import DataError

_BATCH_ROWS = 4096
_RATIO_FLOOR = 16 << 20


def read_parquet(
    data: bytes, bad_rows: BadRows, path: Path, *, max_bytes: int = MAX_BYTES
) -> tuple[list[str], list[Row]]:
    """Read a Parquet file; the line of a row is its 1-based record number.

    Raises:
        DataError: damaged, duplicate columns, more than `max_bytes` when unpacked, or a bad row
            under the policy "error".
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        columns = [str(name) for name in file.schema_arrow.names]
        _check_columns(columns, path)
        _check_sizes(file.metadata, len(data), path, max_bytes)
        rows: list[Row] = []
        unpacked = number = 0
        for batch in file.iter_batches(batch_size=_BATCH_ROWS):
            unpacked += int(batch.nbytes)
            if unpacked > max_bytes:
                raise _too_large(unpacked, max_bytes, path)
            for record in batch.to_pylist():
                number += 1
                _add_row(record, number, rows, bad_rows, path)
    except (pa.ArrowException, OSError, OverflowError, MemoryError) as error:
        raise DataError(
            f"the Parquet data is damaged or uses something unknown ({error}); write it again",
            path=path,
        ) from error
    return columns, rows


def _add_row(
    record: dict[str, Any], number: int, rows: list[Row], bad_rows: BadRows, path: Path
) -> None:
    for name, value in record.items():
        if isinstance(value, bytes):
            try:
                record[name] = value.decode("utf-8")
            except UnicodeDecodeError:
                bad_rows.add(number, "the cell holds bytes that are not UTF-8 text", column=name)
                return
    problem = row_problem(record)
    if problem is not None:
        bad_rows.add(number, problem[1], column=problem[0])
        return
    rows.append(Row(record, path, number))


def _check_columns(columns: list[str], path: Path) -> None:
    for name in columns:
        if columns.count(name) > 1:
            raise DataError("two columns have this name; rename one", path=path, column=name)


def _check_sizes(metadata: Any, size: int, path: Path, max_bytes: int) -> None:
    total = 0
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            total += max(int(chunk.total_uncompressed_size), 0)
    limit = min(max_bytes, max(_RATIO_FLOOR, MAX_RATIO * size))
    if total > limit:
        raise _too_large(total, limit, path)


def _too_large(found: int, limit: int, path: Path) -> DataError:
    return DataError(
        f"the table unpacks to {found:,} bytes, allowed are {limit:,} "
        f"(at most {MAX_RATIO} times the file); split it or write it without compression",
        path=path,
    )
