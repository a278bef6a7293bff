from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
from pathlib import Path

import pyarrow as pa
import pytest

from litebert.data.compressed import peek_bytes, read_bytes
from litebert.data.tables import read_table
from litebert.errors import DataError

CSV = b"text,label\n" + b"".join(b"row number %d,%d\n" % (i, i % 2) for i in range(200))


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_tables(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows.csv.{suffix}"
    path.write_bytes(PACKERS[suffix](CSV))
    table = read_table(path)
    assert len(table) == 200 and table.format == "csv"
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert peek_bytes(path, 4) == b"text"


@pytest.mark.parametrize("suffix", PACKERS)
def test_members_in_a_row_and_wrong_suffixes(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "rows.csv"  # the content decides
    path.write_bytes(PACKERS[suffix](CSV) + PACKERS[suffix](b"more,1\n"))
    assert len(read_table(path)) == 201


@pytest.mark.parametrize("suffix", PACKERS)
def test_bombs_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bomb.csv.{suffix}"
    path.write_bytes(PACKERS[suffix](b"a,b\n" * 600_000))
    with pytest.raises(DataError, match="200 times"):
        read_table(path)


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_cut_files_are_refused(tmp_path: Path, suffix: str, keep: float) -> None:
    packed = PACKERS[suffix](os.urandom(50_000).hex().encode())
    path = tmp_path / f"cut.csv.{suffix}"
    path.write_bytes(packed[: int(len(packed) * keep)])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_bytes(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_flipped_bits_are_refused_or_change_nothing(tmp_path: Path, suffix: str) -> None:
    packed = bytearray(PACKERS[suffix](CSV))
    for position in range(6, len(packed), max(1, len(packed) // 40)):
        broken = bytearray(packed)
        broken[position] ^= 0x10
        path = tmp_path / f"flip.csv.{suffix}"
        path.write_bytes(broken)
        try:
            read_bytes(path)
        except DataError:
            continue


def test_the_absolute_cap(tmp_path: Path) -> None:
    path = tmp_path / "big.csv"
    path.write_bytes(CSV)
    with pytest.raises(DataError, match="at most 100 are read"):
        read_bytes(path, max_bytes=100)
    path.write_bytes(gzip.compress(CSV))
    with pytest.raises(DataError, match="become more than"):
        read_bytes(path, max_bytes=len(CSV) - 1)


def test_an_empty_member(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(DataError, match="empty after decompression"):
        read_bytes(path)


@pytest.mark.parametrize(
    ("magic", "word"),
    [
        (b"PK\x03\x04", "Excel"), (b"\xd0\xcf\x11\xe0", "Excel"), (b"%PDF-1.4", "PDF"),
        (b"SQLite format 3\x00", "SQLite"), (b"\x89PNG", "image"), (b"7z\xbc\xaf\x27\x1c", "7-zip"),
        (b"ARROW1", "Arrow"),
    ],
)  # fmt: skip
def test_foreign_files_are_named(tmp_path: Path, magic: bytes, word: str) -> None:
    path = tmp_path / "what.csv"
    path.write_bytes(magic + b"rest")
    with pytest.raises(DataError, match=word):
        read_bytes(path)


def test_things_that_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, message in (
        (tmp_path / "absent.csv", "no such file"),
        (tmp_path, "folder"),
        (Path("/dev/zero"), "device"),
        (Path("a\x00b"), "cannot read"),
    ):
        with pytest.raises(DataError, match=message):
            read_bytes(path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="pipe"):
        read_bytes(pipe)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(DataError, match="cannot read"):
        read_bytes(loop)
    secret = tmp_path / "secret.csv"
    secret.write_bytes(CSV)

    def refuse(self: Path, *args: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        read_bytes(secret)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        peek_bytes(secret)


def test_zstd_streams_without_a_declared_size(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(CSV)
    assert len(read_table(path)) == 200
