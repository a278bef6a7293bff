"""Whatever bytes a file holds: rows, or an error of ours with the file in it, and nothing else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.check import check_data
from litebert.data.examples import make_examples
from litebert.data.sources import load_source
from litebert.data.split import split_examples
from litebert.errors import LitebertError

ROWS = [{"text": f"some text, number {i}\n", "label": "ab"[i % 2]} for i in range(12)]


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    return sink.getvalue().to_pybytes()


SEEDS = {
    "x.csv": "text,label\n" + "".join(f'"say ""{i}"", ok",{"ab"[i % 2]}\n' for i in range(9)),
    "x.tsv": "sentence\tlabel\n" + "".join(f"a text {i}\t{i % 3}\n" for i in range(9)),
    "x.jsonl": "\n".join(json.dumps(row) for row in ROWS),
    "x.json": json.dumps(ROWS, indent=1),
    "x.txt": "".join(f"__label__{'ab'[i % 2]} words {i}\n" for i in range(9)),
}
CONTENT: dict[str, bytes] = {name: text.encode() for name, text in SEEDS.items()}
CONTENT |= {
    "x.parquet": parquet(),
    "x.csv.gz": gzip.compress(CONTENT["x.csv"]),
    "utf16.csv": SEEDS["x.csv"].encode("utf-16"),
}
EDIT = st.tuples(
    st.integers(0, 10_000),
    st.sampled_from(["cut", "set", "insert", "repeat"]),
    st.one_of(st.sampled_from([b'"', b"\n", b"\r", b",", b"\x00", b"\xff", b"[", b"{", b"NaN"]),
              st.binary(min_size=1, max_size=4)),
)  # fmt: skip


def edited(content: bytes, edits: list[tuple[int, str, bytes]]) -> bytes:
    for position, what, data in edits:
        at = position % (len(content) + 1)
        match what:
            case "cut":
                content = content[:at] + content[at + len(data) * 9 :]
            case "set":
                content = content[:at] + data + content[at + len(data) :]
            case "insert":
                content = content[:at] + data + content[at:]
            case _:
                content = content[:at] + content[max(0, at - 40) :]
    return content


def walk(path: Path, policy: str) -> None:
    source = load_source(path, on_bad_row=policy)  # type: ignore[arg-type]
    schema = source.schema()
    examples = make_examples(source.train, schema, policy)  # type: ignore[arg-type]
    for example in examples:
        example.text.encode("utf-8")
        assert example.text.strip() and example.line >= 1
    split_examples(examples, 0.3, 0)
    json.dumps(check_data(source.train, schema=schema).to_json())


@pytest.mark.parametrize("name", CONTENT)
@given(edits=st.lists(EDIT, min_size=1, max_size=4), policy=st.sampled_from(["error", "skip"]))
def test_edited_files(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    edits: list[tuple[int, str, bytes]],
    policy: str,
) -> None:
    path = tmp_path_factory.mktemp("fuzz", numbered=True) / name
    path.write_bytes(edited(CONTENT[name], edits))
    try:
        walk(path, policy)
    except LitebertError as error:
        assert str(path) in str(error)


@given(data=st.one_of(st.binary(max_size=80), st.text(max_size=40).map(lambda t: t.encode("utf-8", "surrogatepass"))),
       name=st.sampled_from(["x.csv", "x.tsv", "x.json", "x.jsonl", "x.txt", "x", "x.parquet"]))  # fmt: skip
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    path = tmp_path_factory.mktemp("fuzz", numbered=True) / name
    path.write_bytes(data)
    try:
        walk(path, "skip")
    except LitebertError as error:
        assert str(path) in str(error)


@pytest.mark.parametrize(
    "text", ["sep=;", "sep=;\n", "sep=,\n\n\n", "\t\t\n", "\x0b", '"', '""', ","]
)
def test_next_to_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(LitebertError, match=r"x\.csv"):
        walk(path, "skip")
