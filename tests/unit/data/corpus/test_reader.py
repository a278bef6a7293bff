"""Files of every kind become the same documents."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from litebert.data.corpus import (
    CorpusOptions,
    Document,
    Fault,
    Position,
    corpus_files,
    read_documents,
)
from litebert.errors import DataError, SettingsError

sys.path.insert(0, str(Path(__file__).parent))

from makers import tar_of, zip_of, zstd

TEXT = "The heron stood still.\nIt waited.\n\nA second text, über ça.\n"
DOCUMENTS = ["The heron stood still.\nIt waited.", "A second text, über ça."]


def read(
    *paths: Path, start: Position | None = None, **options: object
) -> tuple[list[Document], list[Fault]]:
    faults: list[Fault] = []
    chosen = CorpusOptions.model_validate(options)
    return list(read_documents(paths, chosen, on_fault=faults.append, start=start)), faults


def texts(*paths: Path, **options: object) -> list[str]:
    documents, faults = read(*paths, **options)
    assert not faults
    return [document.text for document in documents]


RAW = TEXT.encode()
PACKED: dict[str, bytes] = {
    "a.txt": RAW,
    "a": RAW,
    "bom.txt": b"\xef\xbb\xbf" + RAW,
    "dos.txt": TEXT.replace("\n", "\r\n").encode(),
    "mac.txt": TEXT.replace("\n", "\r").encode(),
    "wide.txt": TEXT.encode("utf-16"),
    "a.txt.gz": gzip.compress(RAW),
    "a.txt.bz2": bz2.compress(RAW),
    "a.txt.xz": lzma.compress(RAW),
    "a.txt.zst": zstd(RAW),
    "two.gz": gzip.compress(RAW[:20]) + gzip.compress(RAW[20:]),
    "a.tar": tar_of({"x/a.txt": RAW}),
    "a.tar.gz": gzip.compress(tar_of({"x/a.txt": RAW})),
    "a.tar.zst": zstd(tar_of({"x/a.txt": RAW})),
    "a.tgz": gzip.compress(tar_of({"a.txt.xz": lzma.compress(RAW)})),
    "a.zip": zip_of({"x/a.txt": RAW, "x/": b""}),
    "packed.zip": zip_of({"a.txt.gz": gzip.compress(RAW)}),
    "a.jsonl": b"".join(json.dumps({"text": t}).encode() + b"\n" for t in DOCUMENTS),
    "a.json": json.dumps([{"text": t} for t in DOCUMENTS]).encode(),
    "lines.json": b"".join(json.dumps({"text": t}).encode() + b"\n" for t in DOCUMENTS),
}


@pytest.mark.parametrize("name", PACKED)
def test_the_same_documents_from_every_kind_of_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACKED[name])
    documents, faults = read(path)
    assert not faults
    assert [document.text for document in documents] == DOCUMENTS
    assert [document.number for document in documents] == [0, 1]
    assert documents[1].line == (4 if "json" not in name else 2)
    assert (documents[0].member is not None) == (".tar" in name or "zip" in name or "tgz" in name)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]
)
def test_parquet(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "a.parquet"
    values = [text.encode() if kind == pa.binary() else text for text in DOCUMENTS]
    pq.write_table(pa.table({"id": [1, 2], "text": pa.array(values).cast(kind)}), path)
    assert texts(path) == DOCUMENTS


def test_where_documents_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n\nOne.\ntwo\n \n\n\nThree.\n", encoding="utf-8")
    assert texts(path) == ["One.\ntwo", "Three."]
    assert texts(path, documents="file") == ["One.\ntwo\n\nThree."]
    assert texts(path, documents="line") == ["One.", "two", "Three."]


def test_wiki_titles_begin_documents(tmp_path: Path) -> None:
    path = tmp_path / "wiki.raw"
    path.write_text(
        " \n = The Fen = \n \n A fen is wet . 1 + 1 = 2\n \n = = Water = = \n \n It is slow .\n \n"
        " = Reed = \n \n Reed grows .\n",
        encoding="utf-8",
    )
    assert texts(path) == [
        "The Fen\n\n A fen is wet . 1 + 1 = 2\n\nWater\n\n It is slow .",
        "Reed\n\n Reed grows .",
    ]


def test_folders_are_read_in_a_fixed_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/b.txt", "c.txt", ".hidden", ".git/x.txt"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(name, encoding="utf-8")
    assert texts(tmp_path) == ["a/b.txt", "a/z.txt", "b.txt", "c.txt"]
    assert texts(tmp_path / "c.txt", tmp_path)[0] == "c.txt"
    assert len(corpus_files([tmp_path, tmp_path / "b.txt"])) == 4


def test_reading_goes_on_at_any_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.\n\nT\0wo.\n\nThree.\n", encoding="utf-8")
    (tmp_path / "b.zip").write_bytes(
        zip_of({"x.txt": b"Four.\n\nFive.", "y.txt": b"Six.", "z.png": b"\x89PNG"})
    )
    whole, faults = read(tmp_path)
    assert [d.text for d in whole] == ["One.", "Three.", "Four.", "Five.", "Six."]
    assert [fault.kind for fault in faults] == ["NUL", "not text"]
    for count, document in enumerate(whole, start=1):
        seen: list[Fault] = []
        first = read_documents([tmp_path], on_fault=seen.append)
        for _ in range(count):
            next(first)
        rest, later = read(tmp_path, start=document.position.after())
        assert rest == whole[count:]
        assert seen + later == faults


def test_a_start_outside_of_the_corpus_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One.", encoding="utf-8")
    assert read(tmp_path, start=Position(1, 0)) == ([], [])
    with pytest.raises(SettingsError, match="the corpus has 1 files"):
        read(tmp_path, start=Position(2, 0))


def test_long_documents_are_cut_at_paragraphs_and_nothing_is_lost(tmp_path: Path) -> None:
    body = "\n\n".join(f"Paragraph {i} of the report.\nIt has two lines." for i in range(200))
    makers: dict[str, Callable[[], bytes]] = {
        "a.txt": body.encode,
        "a.md": body.encode,
        "a.jsonl": lambda: json.dumps({"text": body}).encode(),
    }
    for name, make in makers.items():
        path = tmp_path / name
        path.write_bytes(make())
        documents, faults = read(path, documents="file", max_document_chars=1000)
        assert len(documents) > 8
        assert "\n\n".join(document.text for document in documents) == body
        assert all(len(document.text) <= 1000 for document in documents)
        assert {fault.kind for fault in faults} == {"cut"} and len(faults) == len(documents) - 1


def test_one_endless_line_is_cut_at_words(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 2000, encoding="utf-8")
    for rule in ("line", "file", "blank-line"):
        documents, _ = read(path, documents=rule, max_document_chars=1000)
        assert sum(document.text.count("word") for document in documents) == 2000
        assert " ".join(document.text for document in documents).split() == ["word"] * 2000


def test_told_encodings(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Größe – naïve".encode("cp1252"))
    with pytest.raises(DataError, match=r"byte 0xF6 at offset 2 is not utf-8.*--encoding"):
        read(path)
    assert texts(path, encoding="cp1252") == ["Größe – naïve"]
    documents, faults = read(path, on_bad="skip")
    assert not documents and [fault.kind for fault in faults] == ["bad bytes"]
    path.write_bytes("Größe".encode("utf-16-le"))
    assert texts(path, encoding="utf-16-le") == ["Größe"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_an_encoding_that_needs_a_mark_is_no_traceback(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"plain text, and no mark at all.\n" * 8)
    documents, faults = read(path, encoding=encoding, on_bad="skip")
    assert not documents and [fault.kind for fault in faults] == ["bad bytes"]
    with pytest.raises(DataError, match=f"{encoding}.*--encoding"):
        read(path, encoding=encoding)


def test_the_offset_of_a_bad_byte_is_exact_in_any_block(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    start = "ä".encode() * 262_143 + b"x"
    path.write_bytes(start + b"\n\n\xffgood\n\nmore")
    with pytest.raises(DataError, match=f"offset {len(start) + 2:,} is not utf-8"):
        read(path)
    documents, faults = read(path, on_bad="skip")
    assert [d.text for d in documents][-1] == "more" and len(documents) == 2
    assert [(fault.kind, fault.line, fault.number) for fault in faults] == [("bad bytes", 3, 1)]
