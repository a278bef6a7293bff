"""Files that go wrong in every way known: a typed error with its place, or a counted skip."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from litebert.data.examples import make_examples
from litebert.data.schema import infer_schema
from litebert.data.sources import load_source
from litebert.errors import DataError, LitebertError

GOOD = "text,label\nfine day,a\nbad day,b\nfine night,a\nbad night,b\n"


def parquet_bytes(columns: dict[str, list[object]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


PARQUET = parquet_bytes({"text": ["a b", "c d", "e f"], "label": ["x", "y", "x"]})

# name -> (file name, content, line blamed or None, words of the message)
REFUSED: dict[str, tuple[str, bytes, int | None, str]] = {
    "empty": ("x.csv", b"", None, "empty"),
    "only newlines": ("x.csv", b"\n\r\n\n", None, "blank lines"),
    "only a mark": ("x.csv", b"\xef\xbb\xbf", None, "blank lines"),
    "only a header": ("x.csv", b"text,label\n", None, "no rows"),
    "one column": ("x.csv", b"text\nhello there\nbye now\n", None, "no column looks like labels"),
    "only numbers": ("x.csv", b"a,b\n1,2\n3,4\n", None, "no column looks like text"),
    "one label": ("x.csv", b"text,label\nhi there,a\nbye now,a\n", None, "one label 'a'"),
    "unique labels": (
        "x.csv",
        b"text,label\nhi there,a\nbye now,b\nso so,c\n",
        None,
        "id or a text",
    ),
    "no label filled": ("x.csv", b"text,label\nhi there,\nbye now,\n", None, "no row has a label"),
    "duplicate header": ("x.csv", b"text,label,text\na,b,c\n", 1, "twice"),
    "NUL in the header": (
        "x.csv",
        b"te\x00xt,label\na long enough line to be text,b\n" * 3,
        1,
        "NUL",
    ),
    "NUL in a cell": ("x.csv", GOOD.encode() + b"bad\x00cell,a\n", 6, "NUL"),
    "unclosed quote": ("x.csv", GOOD.encode() + b'"open,a\nmore,b\n', 6, "never closed"),
    "text after a quote": ("x.csv", GOOD.encode() + b'"a" b,a\n', 6, "closing quote"),
    "quoted header unclosed": ("x.csv", b'"text,label\na,b\n', 1, "never closed"),
    "too many cells": ("x.csv", GOOD.encode() + b"a,b,c\n", 6, "too many"),
    "too few cells": ("x.csv", GOOD.encode() + b"a\n", 6, "too few"),
    "label missing": ("x.csv", GOOD.encode() + b"no label here,\n", 6, "label is missing"),
    "text missing": ("x.csv", GOOD.encode() + b"  ,a\n", 6, "text is empty"),
    "bad byte": ("x.csv", "text,label\nschön,a\ngrün,b\n".encode() + b"\xff,a\n", 4, "0xFF"),
    "surrogate bytes": ("x.csv", GOOD.encode() + b"\xed\xa0\x80,a\n", 6, "not UTF-8"),
    "random bytes": ("x.csv", bytes(i * 37 % 256 for i in range(3000)), None, "binary"),
    "all zero": ("x.csv", bytes(1000), None, "binary"),
    "cyrillic code page": ("x.csv", "текст,метка\nпривет,а\n".encode("cp1251"), None, "encoding"),
    "cut UTF-16": ("x.csv", GOOD.encode("utf-16")[:-1], None, "cut short"),
    "Excel": ("x.csv", b"PK\x03\x04 workbook", None, "Excel"),
    "50 MB cell": (
        "x.csv",
        GOOD.encode() + b"a" * 50_000_000 + b",a\n",
        6,
        "50,000,000 characters",
    ),
    "NaN number": ("x.csv", b"text,score\nhi there,0.5\nbye now,nan\nso so,1.5\n", 3, "finite"),
    "infinite number": ("x.csv", b"text,score\nhi you,0.5\nbye,inf\nso so,1.5\n", 3, "finite"),
    "JSON lines cut": ("x.jsonl", b'{"text":"a","label":"x"}\n{"text":"b"', 2, "not JSON"),
    "JSON lines of lists": ("x.jsonl", b'["a","x"]\n["b","y"]\n', 1, "not an object"),
    "JSON null": ("x.json", b"null", 1, "null"),
    "JSON number": ("x.json", b"12", 1, "number"),
    "JSON empty": ("x.json", b"{}", 1, "without any value"),
    "JSON empty list": ("x.json", b"[]", None, "no rows"),
    "JSON deep list": ("x.json", b"[" * 100_000, 1, "nested too deeply"),
    "JSON name twice": (
        "x.jsonl",
        b'{"text":"a","label":"x"}\n{"text":"a","text":"b","label":"x"}\n',
        2,
        "'text' occurs twice",
    ),
    "JSON list name twice": ("x.json", b'[{"text":"a","text":"b","label":"x"}]', 1, "occurs twice"),
    "JSON deep line": ("x.jsonl", b'{"a":' * 100_000 + b"\n", 1, "nested too deeply"),
    "JSON deep first line": ("x.json", b'{"a":' * 100_000 + b"\n{}", 1, "nested too deeply"),
    "JSON of scalars": ("x.json", b'{"a": 1,\n"b": 2}', 1, "is not a table"),
    "JSON late deep object": ("x.json", b'{\n"a":' * 100_000, 1, "nested too deeply|not JSON"),
    "JSON list cut": ("x.json", b'[{"text":"a","label":"x"},\n{"text":"b","label":"y"}', 2, "cut"),
    "JSON rubbish behind": ("x.json", b'[{"text":"a","label":"x"}]\n more', 2, "after the end"),
    "JSON surrogate": ("x.jsonl", b'{"text":"a \\ud800","label":"x"}\n', 1, "surrogate U\\+D800"),
    "JSON surrogate name": ("x.jsonl", b'{"\\ud800":"a","label":"x"}\n', 1, "in the name"),
    "JSON NUL": ("x.jsonl", b'{"text":"a \\u0000","label":"x"}\n', 1, "NUL"),
    "JSON giant number": (
        "x.jsonl",
        b'{"text":"a","label":' + b"9" * 5000 + b"}\n",
        1,
        "not usable",
    ),
    "JSON NaN labels": ("x.jsonl", b'{"text":"a b","label":NaN}\n' * 3, None, "no row has a label"),
    "JSON dict label": (
        "x.jsonl",
        b'{"text":"a b","label":"x"}\n{"text":"c d","label":"y"}\n' * 2
        + b'{"text":"e f","label":{"k":1}}\n',
        5,
        "one label a row",
    ),
    "JSON text a list": (
        "x.jsonl",
        b'{"text":"a b","label":"x"}\n{"text":"c d","label":"y"}\n{"text":["e"],"label":"x"}\n',
        3,
        "where a text should be",
    ),
    "parquet cut": ("x.parquet", PARQUET[:-20], None, "Parquet data is damaged"),
    "parquet start only": ("x.parquet", PARQUET[:200], None, "damaged"),
    "parquet that is text": ("x.parquet", GOOD.encode(), None, "damaged"),
    "parquet flipped": ("x.parquet", PARQUET[:40] + b"\xff" * 40 + PARQUET[80:], None, "."),
    "parquet of bytes": (
        "x.parquet",
        parquet_bytes({"text": [b"ok ok", b"\xff\xfe", b"fine"], "label": ["x", "y", "x"]}),
        2,
        "bytes that are not UTF-8",
    ),
    "parquet empty": ("x.parquet", parquet_bytes({"text": [], "label": []}), None, "no rows"),
    "gzip cut": ("x.csv.gz", gzip.compress(GOOD.encode())[:-12], None, "cut short"),
    "gzip of nothing": ("x.csv.gz", gzip.compress(b""), None, "empty"),
    "gzip rubbish": ("x.csv.gz", b"\x1f\x8b" + b"rubbish" * 9, None, "damaged"),
    "fastText without text": ("x.txt", b"__label__a hi\n__label__b\n", 2, "no text"),
    "fastText with NUL": ("x.txt", b"__label__a hi\n__label__b x\x00y\n", 2, "NUL"),
    "fastText without label": ("x.txt", b"__label__a hi\nplain\n", 2, "no __label__"),
}


def train_on(path: Path, policy: str = "error") -> int:
    """Read, infer and make examples; return the number of examples plus skipped rows."""
    source = load_source(path, on_bad_row=policy)  # type: ignore[arg-type]
    schema = infer_schema(source.train)
    examples = make_examples(source.train, schema, policy)  # type: ignore[arg-type]
    return len(examples) + len(source.train.skipped)


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_files_give_a_typed_error_with_its_place(tmp_path: Path, name: str) -> None:
    file_name, content, line, message = REFUSED[name]
    path = tmp_path / file_name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        train_on(path)
    assert caught.value.path == path
    if name != "parquet flipped":
        assert caught.value.line == line
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "name", [n for n, case in REFUSED.items() if (case[2] or 0) > 1 and n != "50 MB cell"]
)
def test_skipping_counts_what_it_leaves_out(tmp_path: Path, name: str) -> None:
    file_name, content, line, _ = REFUSED[name]
    path = tmp_path / file_name
    path.write_bytes(content)
    try:
        source = load_source(path, on_bad_row="skip")
        schema = infer_schema(source.train)
        make_examples(source.train, schema, "skip")
    except DataError:
        return  # what is left may be too little to learn from
    assert line in {row.line for row in source.train.skipped}


ACCEPTED: dict[str, tuple[str, bytes, int]] = {
    "two marks": ("x.csv", b"\xef\xbb\xbf" * 2 + GOOD.encode(), 4),
    "UTF-16 without a mark": ("x.csv", GOOD.encode("utf-16-le"), 4),
    "UTF-16 big-endian": ("x.csv", GOOD.encode("utf-16-be"), 4),
    "lone CR": ("x.csv", GOOD.replace("\n", "\r").encode(), 4),
    "CRLF": ("x.csv", GOOD.replace("\n", "\r\n").encode(), 4),
    "no last newline": ("x.csv", GOOD.rstrip().encode(), 4),
    "300k-character cell": ("x.csv", GOOD.encode() + b"word " * 60_000 + b",a\n", 5),
    "no suffix": ("rows", GOOD.encode(), 4),
    "semicolons": ("x.csv", GOOD.replace(",", ";").encode(), 4),
    "tabs called csv": ("x.csv", GOOD.replace(",", "\t").encode(), 4),
    "bars": ("x.txt", GOOD.replace(",", "|").encode(), 4),
    "unnamed index column": (
        "x.csv", b",text,label\n0,fine day,a\n1,bad day,b\n2,fine,a\n3,bad,b\n", 4,
    ),
    "quoted newlines": ("x.csv", GOOD.encode() + b'"one\n\ntwo",a\n', 5),
    "spaces in the name": ("my data 数据.csv", GOOD.encode(), 4),
    "JSON lines with blank lines": ("x.jsonl", b'\n{"text":"a b","label":1}\n\n{"text":"c d","label":0}\n', 2),
    "JSON lines called json": ("x.json", b'{"text":"a b","label":1}\n{"text":"c d","label":0}\n', 2),
    "JSON columns": ("x.json", json.dumps({"text": ["a b", "c d"], "label": [0, 1]}).encode(), 2),
    "JSON wrapped": (
        "x.json", json.dumps({"data": [{"text": "a b", "label": 0}, {"text": "c d", "label": 1}]}).encode(), 2,
    ),
    "JSON by key": (
        "x.json", json.dumps({"0": {"text": "a b", "label": 0}, "1": {"text": "c d", "label": 1}}).encode(), 2,
    ),
    "JSON UTF-16": ("x.json", '[{"text":"a b","label":0},{"text":"c d","label":1}]'.encode("utf-16"), 2),
    "parquet": ("x.parquet", PARQUET, 3),
    "parquet without suffix": ("rows", PARQUET, 3),
    "gzip": ("x.csv.gz", gzip.compress(GOOD.encode()), 4),
    "fastText": ("x.txt", b"__label__a hi you\n__label__b bye now\n\n__label__a hello\n", 3),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_odd_but_honest_files_are_read(tmp_path: Path, name: str) -> None:
    file_name, content, rows = ACCEPTED[name]
    path = tmp_path / file_name
    path.write_bytes(content)
    assert train_on(path) == rows


def a_folder(path: Path) -> None:
    path.mkdir()


def a_symlink_loop(path: Path) -> None:
    path.symlink_to(path)


def a_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


@pytest.mark.parametrize("make", [a_folder, a_symlink_loop, a_dangling_link, lambda path: None])
def test_paths_that_are_no_files(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "x.csv"
    make(path)
    with pytest.raises(LitebertError) as caught:
        train_on(path)
    assert str(path) in str(caught.value)
