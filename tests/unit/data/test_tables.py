from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.columnar import read_parquet
from litebert.data.jsonl import read_json
from litebert.data.rows import BadRows
from litebert.data.tables import read_table
from litebert.errors import DataError, SettingsError

PATH = Path("made_up")
VALUE = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8),
    st.lists(st.sampled_from(["a", "b"]), max_size=3),
)  # fmt: skip
RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["text", "label", "x y", "é"]), VALUE, min_size=1),
    min_size=1,
    max_size=6,
)


@given(RECORDS, st.sampled_from([None, 1, "\t"]), st.booleans(), st.integers(0, 3))
def test_json_lists_come_back_with_exact_lines(
    records: list[dict[str, object]], indent: int | str | None, ascii_only: bool, blank: int
) -> None:
    text = "\n" * blank + json.dumps(records, indent=indent, ensure_ascii=ascii_only)
    columns, rows = read_json(text, BadRows(PATH), PATH)
    assert [
        {k: row.values[k] for k in record} for row, record in zip(rows, records, strict=True)
    ] == records
    assert set(columns) == {name for record in records for name in record}
    lines = text.split("\n")
    for row in rows:
        assert lines[row.line - 1].lstrip().startswith(("{", "[{"))
    assert [row.line for row in rows] == sorted(row.line for row in rows)


@given(RECORDS, st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_json_lines_come_back_with_exact_lines(records: list[dict[str, object]], gap: str) -> None:
    text = gap.join(json.dumps(record) for record in records)
    _, rows = read_json(text, BadRows(PATH), PATH, lines=True)
    step = gap.count("\n")
    assert [row.line for row in rows] == [1 + step * i for i in range(len(records))]
    assert [{k: row.values[k] for k in r} for row, r in zip(rows, records, strict=True)] == records


def test_a_broken_json_line_is_skipped_and_counted() -> None:
    bad_rows = BadRows(PATH, "skip")
    text = '{"a": "x"}\n{"a": \n{"a": "y"}\n'
    _, rows = read_json(text, bad_rows, PATH)
    assert [row.line for row in rows] == [1, 3]
    assert [row.line for row in bad_rows.skipped] == [2]


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
def test_parquet(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "rows.parquet"
    columns = {
        "text": pa.array(["a", None, "c"]),
        "label": pa.array([["x"], [], ["x", "y"]]),
        "number": pa.array([1.5, 2.0, None]),
        "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        "raw": pa.array([b"caf\xc3\xa9", b"", None]),
    }
    pq.write_table(pa.table(columns), path, compression=compression)
    table = read_table(path)
    assert table.columns == list(columns) and table.format == "parquet"
    assert table.rows[0].values == {
        "text": "a",
        "label": ["x"],
        "number": 1.5,
        "kind": "u",
        "raw": "café",
    }
    assert [row.line for row in table.rows] == [1, 2, 3]


def test_parquet_bombs() -> None:
    sink = pa.BufferOutputStream()
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab"), 30)) for _ in range(100)]
    pq.write_table(
        pa.table({"text": ["x" * 20_000_000]}), sink, compression="zstd", use_dictionary=False
    )
    with pytest.raises(DataError, match="unpacks to"):
        read_parquet(sink.getvalue().to_pybytes(), BadRows(PATH), PATH)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": words * 2000}), sink)  # small by its dictionary, large as rows
    with pytest.raises(DataError, match="unpacks to"):
        read_parquet(sink.getvalue().to_pybytes(), BadRows(PATH), PATH, max_bytes=3_000_000)


def test_parquet_with_one_name_twice() -> None:
    sink = pa.BufferOutputStream()
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, sink)
    with pytest.raises(DataError, match="two columns have this name"):
        read_parquet(sink.getvalue().to_pybytes(), BadRows(PATH), PATH)


def test_parquet_bad_cells_can_be_skipped() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"text": ["fine", "nul \x00", "ok"], "raw": [b"a", b"b", b"\xff"]}), sink
    )
    bad_rows = BadRows(PATH, "skip")
    _, rows = read_parquet(sink.getvalue().to_pybytes(), bad_rows, PATH)
    assert [row.line for row in rows] == [1] and [r.line for r in bad_rows.skipped] == [2, 3]


def test_told_options(tmp_path: Path) -> None:
    path = tmp_path / "x.dat"
    path.write_text("a:b\nc:d\n")
    assert read_table(path, delimiter=":", header=False).rows[1].values == {
        "column_1": "c",
        "column_2": "d",
    }
    assert len(read_table(path, delimiter=":", header=True)) == 1
    path.write_text('{"text": "a"}\n')
    assert read_table(path, format="jsonl").columns == ["text"]
    with pytest.raises(SettingsError, match="allowed: csv, tsv"):
        read_table(path, format="xml")
    path.write_text("text,label\n'a,1\n")
    assert "commas" in read_table(path).notes[0]


def test_when_every_row_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("text,label\na\nb\n")
    with pytest.raises(DataError, match="all 2 rows are unusable; the first: 1 cells") as caught:
        read_table(path, delimiter=",", header=True, on_bad_row="skip")
    assert caught.value.line == 2
