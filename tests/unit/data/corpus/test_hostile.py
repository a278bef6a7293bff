"""Hostile, broken and foreign files: a located error or a counted fault, never a traceback."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import stat
import struct
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.corpus import CorpusOptions, Document, Fault, read_documents
from litebert.errors import DataError, LitebertError, SettingsError
from litebert.settings import build_settings

sys.path.insert(0, str(Path(__file__).parent))

from makers import PACKERS, tar_of, zip_of, zstd

GOOD = b"A good text that stands before.\n\nAnd another one.\n"


def read(*paths: Path, **options: object) -> tuple[list[Document], list[Fault]]:
    faults: list[Fault] = []
    chosen = CorpusOptions.model_validate(options)
    return list(read_documents(paths, chosen, on_fault=faults.append)), faults


def link(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    item = tarfile.TarInfo(name)
    item.type, item.linkname = kind, target
    return item


def zip_link() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        item = zipfile.ZipInfo("link.txt")
        item.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(item, "/etc/passwd")
        archive.writestr("good.txt", GOOD)
    return buffer.getvalue()


def encrypted_zip() -> bytes:
    data = bytearray(zip_of({"a.txt": GOOD}))
    data[6] |= 1
    at = data.rfind(b"PK\x01\x02")
    data[at + 8] |= 1
    return bytes(data)


def zip_with_a_wrong_sum() -> bytes:
    data = bytearray(zip_of({"a.txt": GOOD}, zipfile.ZIP_STORED))
    data[data.find(b"good text")] ^= 1
    return bytes(data)


def zip_with_a_huge_directory() -> bytes:
    data = bytearray(zip_of({"a.txt": GOOD}))
    at = data.rfind(b"PK\x05\x06")
    data[at + 12 : at + 16] = struct.pack("<I", 1 << 30)
    return bytes(data)


def tar_with_a_huge_header() -> bytes:
    item = tarfile.TarInfo("a.txt")
    item.size = 0
    item.pax_headers = {"comment": os.urandom(3 << 20).hex()}
    return item.tobuf(tarfile.PAX_FORMAT) + bytes(1024)


def tar_with_a_sparse_file() -> bytes:
    item = tarfile.TarInfo("a.txt")
    item.type = tarfile.GNUTYPE_SPARSE
    data = bytearray(item.tobuf(tarfile.GNU_FORMAT))
    data[386 : 386 + 24] = b"%011o\0%011o\0" % (0, 0)  # one empty block at 0
    data[483:495] = b"77777777777\0"  # eight gigabytes of holes
    return rechecked(data) + bytes(1024)


def rechecked(header: bytearray) -> bytes:
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    return bytes(header)


BOMB = (b"a b " * 250 + b"\n") * 1_600
PATHS = ("../a.txt", "/etc/a.txt", "x/../../a.txt", "C:\\a.txt", "..\\a.txt", "\\\\host\\a.txt")

REFUSED: dict[str, tuple[str, bytes, str]] = {
    **{f"bomb {end}": (f"a.txt.{end}", pack(BOMB), "200 times") for end, pack in PACKERS.items()},
    **{
        f"cut {end}": (f"a.txt.{end}", pack(os.urandom(9000).hex().encode())[:4000], "cut short")
        for end, pack in PACKERS.items()
    },
    **{
        f"twice {end}": ("a.txt.gz", gzip.compress(pack(GOOD)), "compressed twice")
        for end, pack in PACKERS.items()
    },
    **{f"tar {name}": ("a.tar", tar_of({name: GOOD}), "leads out of") for name in PATHS},
    **{f"zip {name}": ("a.zip", zip_of({name: GOOD}), "leads out of") for name in PATHS},
    "bomb in tar": ("a.tar.gz", gzip.compress(tar_of({"a.txt": BOMB})), "200 times"),
    "bomb in zip": ("a.zip", zip_of({"a.txt": BOMB}), "200 times"),
    "many small bombs": ("a.zip", zip_of({f"{i}.txt": BOMB[:200_000] for i in range(20)}), "200 times"),
    "bomb in tar member": ("a.tar", tar_of({"a.txt.gz": gzip.compress(BOMB * 2)}), "200 times"),
    "cut tar": ("a.tar", tar_of({"a.txt": GOOD * 900})[:9000], "damaged or cut short"),
    "cut zip": ("a.zip", zip_of({"a.txt": GOOD * 900})[:-30], "damaged or cut short"),
    "zip sum": ("a.zip", zip_with_a_wrong_sum(), "damaged or cut short"),
    "zip directory": ("a.zip", zip_with_a_huge_directory(), "table of contents"),
    "tar header": ("a.tar", tar_with_a_huge_header(), "header of more than"),
    "no tar": ("a.tar", GOOD, "tar archive is damaged"),
    "bad utf-8": ("a.txt", GOOD + b"\xff\xfe", "offset 50 is not utf-8"),
    "cut utf-8": ("a.txt", GOOD + "é".encode()[:1], "offset 50 is not utf-8"),
    "surrogates in utf-8": ("a.txt", GOOD + b"\xed\xa0\x80", "not utf-8"),
    "cut utf-16": ("a.txt", GOOD.decode().encode("utf-16")[:-1], "not utf-16"),
    "bad bytes in tar": ("a.tar", tar_of({"b.txt": b"\xff"}), r"in member 'b.txt': byte 0xFF at offset 0"),
    "latin-1": ("a.md", "# Größe\n".encode("latin-1"), "--encoding cp1252"),
    "no json": ("a.jsonl", b'{"text": "a"}\n{"text": \n', r"a.jsonl:2: not JSON"),
    "json list line": ("a.jsonl", b'["a"]\n', "a list, expected an object"),
    "deep json line": ("a.jsonl", b"[" * 100_000 + b"\n", "not JSON"),
    "deep json": ("a.json", b"[" * 100_000, "not JSON"),
    "huge number": ("a.jsonl", b'{"text": ' + b"9" * 10_000 + b"}\n", "not JSON|no text"),
    "no field": ("a.jsonl", b'{"body": "a", "title": "b", "n": 1}\n', "'body', 'title'. Tell one with --text-field"),
    "no field in json": ("a.json", b'{"a": {"body": "x"}}', "'body'. Tell one with --text-field"),
    "number as text": ("a.jsonl", b'{"text": 3}\n', "no text named 'text'"),
    "two objects": ("a.json", b'{"text": "a"} {"text": "b"}', "Name the file .jsonl"),
    "bad parquet": ("a.parquet", b"PAR1" + os.urandom(200) + b"PAR1", "Parquet data are damaged"),
    "pdf": ("a.txt", b"%PDF-1.7 ...", "a PDF, not text; extract"),
    "image": ("a.txt", b"\x89PNG\r\n\x1a\n", "an image"),
    "jpeg": ("a.txt", b"\xff\xd8\xff\xe0", "an image"),
    "old office": ("a.doc", b"\xd0\xcf\x11\xe0....", "Office"),
    "7z": ("a.7z", b"7z\xbc\xaf\x27\x1c", "7-zip"),
    "sqlite": ("a.db", b"SQLite format 3\x00", "SQLite"),
    "program": ("a", b"\x7fELF" + bytes(50), "a program"),
    "binary": ("a.bin", bytes(range(256)) * 8, "binary"),
    "wide without a mark": ("a.txt", "Hello there, a text".encode("utf-16-le"), "--encoding utf-16-le"),
    "csv": ("a.csv", b"text,label\n", "a table, not text"),
    "html": ("a.html", b"<html>", "markup"),
    "docx": ("a.docx", zip_of({"word/document.xml": b"<x/>"}), "markup"),
    "empty": ("a.txt", b"", "the file is empty"),
    "parquet in gzip": ("a.parquet.gz", gzip.compress(b"PAR1" + bytes(50)), "cannot be streamed"),
    "zip in gzip": ("a.zip.gz", gzip.compress(zip_of({"a.txt": GOOD})), "cannot be streamed"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_files_are_refused_by_name_and_counted_under_skip(tmp_path: Path, name: str) -> None:
    file, data, message = REFUSED[name]
    path = tmp_path / file
    path.write_bytes(data)
    with pytest.raises(DataError, match=message) as error:
        read(path)
    assert error.value.path == path
    (tmp_path / "z.txt").write_bytes(GOOD)
    documents, faults = read(tmp_path, on_bad="skip")
    assert [document.text for document in documents if document.path.name == "z.txt"]
    assert faults and all(fault.path == path and str(fault) for fault in faults)


LEFT_OUT: dict[str, tuple[str, bytes, str]] = {
    "symbolic link": ("a.tar", tar_of({"l": link("l.txt", tarfile.SYMTYPE), "g.txt": GOOD}), "link or device"),
    "hard link": ("a.tar", tar_of({"l": link("l.txt", tarfile.LNKTYPE), "g.txt": GOOD}), "link or device"),
    "device": ("a.tar", tar_of({"l": link("null", tarfile.CHRTYPE), "g.txt": GOOD}), "link or device"),
    "pipe": ("a.tar", tar_of({"l": link("pipe", tarfile.FIFOTYPE), "g.txt": GOOD}), "link or device"),
    "sparse": ("a.tar", tar_with_a_sparse_file(), "link or device"),
    "zip link": ("a.zip", zip_link(), "link or device"),
    "encrypted": ("a.zip", encrypted_zip(), "encrypted"),
    "zip in zip": ("a.zip", zip_of({"b.zip": zip_of({"a.txt": GOOD}), "g.txt": GOOD}), "nested archive"),
    "tar in tar": ("a.tar", tar_of({"b.tar": tar_of({"a.txt": GOOD}), "g.txt": GOOD}), "nested archive"),
    "parquet in tar": ("a.tar", tar_of({"b.parquet": b"PAR1....", "g.txt": GOOD}), "nested archive"),
    "image in zip": ("a.zip", zip_of({"a.png": b"\x89PNG", "g.txt": GOOD}), "not text"),
    "nul": ("a.txt", b"one\0two\n\n" + GOOD, "NUL"),
    "replacement": ("a.txt", "na\ufffdve du\ufffd\n\n".encode() + GOOD, "replacement characters"),
    "surrogate": ("a.jsonl", b'{"text": "x \\ud800"}\n{"text": "good"}\n', "lone surrogate"),
    "empty text": ("a.jsonl", b'{"text": " "}\n{"text": null}\n{"text": "good"}\n', "empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_always_left_out_is_counted(tmp_path: Path, name: str) -> None:
    file, data, kind = LEFT_OUT[name]
    (tmp_path / file).write_bytes(data)
    documents, faults = read(tmp_path)
    assert {fault.kind for fault in faults} == {kind}
    if name not in ("sparse", "encrypted"):
        assert "good" in documents[-1].text or "another" in documents[-1].text
    assert not any("root:" in document.text for document in documents)


def test_what_only_lies_in_a_folder_is_left_out_but_named_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "b.txt").write_bytes(GOOD)
    documents, faults = read(tmp_path)
    assert len(documents) == 2 and [fault.kind for fault in faults] == ["not text"]
    with pytest.raises(DataError, match="an image"):
        read(tmp_path / "a.png", tmp_path / "b.txt")


def test_documents_before_the_damage_are_read(tmp_path: Path) -> None:
    whole = b"\n\n".join(b"text number %d" % i for i in range(30_000))
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(whole)[:-3000])
    documents, faults = read(tmp_path, on_bad="skip")
    assert len(documents) > 5_000 and [fault.kind for fault in faults] == ["damaged"]


def test_parquet_names_the_columns_there_are(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": ["a"], "n": [1]}), path)
    with pytest.raises(DataError, match=r"'body' \(string\), 'n' \(int64\)"):
        read(path)
    with pytest.raises(DataError, match="column 'n' holds int64, not text"):
        read(path, text_field="n")
    pq.write_table(pa.table({"text": [b"good", b"\xff"]}), path)
    with pytest.raises(DataError, match=r"a\.parquet:2: the cell holds bytes that are not UTF-8"):
        read(path)
    documents, faults = read(path, on_bad="skip")
    assert [d.text for d in documents] == ["good"] and [f.kind for f in faults] == ["bad bytes"]


def test_a_parquet_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    text = "x" * (1 << 20)
    for dictionary in (True, False):
        table = pa.table({"text": [text] * 24})
        pq.write_table(table, path, compression="zstd", use_dictionary=dictionary)
        with pytest.raises(DataError, match="200 times"):
            read(path)


def test_absolute_caps(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(os.urandom(1 << 20).hex().encode()))
    with pytest.raises(DataError, match="become more than 1,048,576"):
        read(path, max_file_bytes=1 << 20)
    for name, data in (("a.zip", zip_of({f"{i}": GOOD for i in range(9)})),
                       ("a.tar", tar_of({f"{i}": GOOD for i in range(9)}))):  # fmt: skip
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DataError, match="more than 8 members"):
            read(tmp_path / name, max_members=8)
        assert len(read(tmp_path / name, max_members=9)[0]) == 18


def test_places_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no corpus was given"):
        read()
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "absent")
    with pytest.raises(DataError, match="holds no files"):
        read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="device, pipe"):
        read(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "loop")
    with pytest.raises(DataError, match=r"loop: a link that leads nowhere .*; remove it"):
        read(tmp_path)
    (tmp_path / "gone.txt").symlink_to("nowhere")
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "a.txt").write_bytes(GOOD)
    (tmp_path / "loop").unlink()
    documents, faults = read(tmp_path, on_bad="skip")
    assert len(documents) == 2 and {fault.kind for fault in faults} == {"unreadable", "not text"}


def test_a_file_that_goes_away_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(GOOD)
    stream = read_documents([path], on_fault=print)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read: No such file"):
        next(stream)


@pytest.mark.parametrize("encoding", ["rot13", "hex", "utf8x", "", "a\0b"])
def test_unusable_encodings(encoding: str) -> None:
    with pytest.raises(SettingsError, match="encoding"):
        build_settings(CorpusOptions, {"encoding": encoding})


NAMES = ("a.txt", "a.md", "a.jsonl", "a.json", "a.parquet", "a.gz", "a.xz", "a.zst", "a.bz2",
         "a.zip", "a.tar", "a.tgz", "a")  # fmt: skip
SEEDS: tuple[bytes, ...] = (
    GOOD,
    b"# Title: A\n\n## Year: 1\n\n---\n\n> *a* _b_ [c](d) `e`\n\n**" + GOOD,
    json.dumps({"text": GOOD.decode(), "b": ["<p>x</p>&amp;"]}).encode() + b"\n",
    *(pack(GOOD * 20) for pack in PACKERS.values()),
    zip_of({"a.txt": GOOD, "b.jsonl": b'{"text": "x"}'}),
    tar_of({"a.txt": GOOD, "b/c.md": b"# x"}),
    gzip.compress(tar_of({"a.txt": GOOD})),
    zstd(tar_of({"a.txt.gz": gzip.compress(GOOD)})),
)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """Random bytes, or a good file with a few bytes changed, cut out or doubled."""
    if draw(st.booleans()):
        return draw(st.binary(min_size=1, max_size=600))
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        change: Any = draw(st.sampled_from(["set", "cut", "insert", "end"]))
        if change == "set" and data:
            data[at] = draw(st.integers(0, 255))
        elif change == "cut":
            del data[at : at + draw(st.integers(1, 40))]
        elif change == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=40))
        else:
            del data[at:]
    return bytes(data)


@given(data=broken(), name=st.sampled_from(NAMES), rule=st.sampled_from(["auto", "file", "line"]))
def test_any_bytes_give_documents_or_a_fault(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str, rule: str
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / name).write_bytes(data)
    try:
        documents, _ = read(folder / name, documents=rule)
    except LitebertError as error:
        assert str(folder / name) in str(error)
    else:
        check(documents)
    documents, faults = read(folder, documents=rule, on_bad="skip")
    check(documents)
    assert all(str(fault) for fault in faults)


def check(documents: list[Document]) -> None:
    for document in documents:
        document.text.encode("utf-8")
        assert document.text.strip() and "\0" not in document.text and "\r" not in document.text
        assert document.line >= 1
    numbers = [document.number for document in documents]
    assert numbers == sorted(set(numbers))
