from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.rows import MAX_CELL_CHARS
from litebert.errors import DataError, SettingsError
from litebert.recipes.line_stream import BATCH_LINES, stream_rows


class Dripping(io.RawIOBase):
    """A stream that hands out its bytes in pieces of given sizes."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data, self._sizes, self._position = data, sizes, 0

    def read1(self, size: int = -1) -> bytes:
        step = self._sizes.pop(0) if self._sizes else size
        piece = self._data[self._position : self._position + min(step, size)]
        self._position += len(piece)
        return piece


def rows_of(data: bytes, columns: tuple[str, ...] = ("text",), **options: str) -> list[dict]:
    return [row for batch in stream_rows(io.BytesIO(data), columns, **options) for row in batch]


lines = st.lists(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r")))


@given(lines=lines, sizes=st.lists(st.integers(1, 7), max_size=60))
def test_every_line_is_a_row_however_the_bytes_arrive(lines: list[str], sizes: list[int]) -> None:
    lines = ["first", *lines]
    data = "".join(line + "\n" for line in lines).encode("utf-8")
    batches = list(stream_rows(Dripping(data, sizes), ("text",)))  # type: ignore[arg-type]
    assert [row["text"] for batch in batches for row in batch] == lines
    assert all(0 < len(batch) <= BATCH_LINES for batch in batches)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-16", "utf-32", "latin-1"])
def test_line_ends_and_encodings(end: str, is_ended: bool, encoding: str | None) -> None:
    text = end.join(["é", "", "b c"]) + (end if is_ended else "")
    data = text.encode(encoding or "utf-8-sig")
    assert rows_of(data, encoding=encoding) == [{"text": "é"}, {"text": ""}, {"text": "b c"}]


def test_a_batch_is_what_has_arrived() -> None:
    def batches() -> Iterator[int]:
        stream = Dripping(b"a\nb\nc\nd\ne", [2, 4, 1, 1, 1])
        return (len(batch) for batch in stream_rows(stream, ("text",)))  # type: ignore[arg-type]

    assert list(batches()) == [1, 2, 1, 1]


def test_many_lines_come_in_small_batches() -> None:
    batches = list(stream_rows(io.BytesIO(b"x\n" * 1000), ("text",)))
    assert [len(batch) for batch in batches] == [256, 256, 256, 232]


def test_the_line_of_a_bad_byte_counts_across_reads() -> None:
    data = b"good\n" * 30_000 + b"b\xe9d\n"
    got: list[int] = []
    with pytest.raises(DataError, match=r"<stdin>:30001: not utf-8") as caught:
        got.extend(len(batch) for batch in stream_rows(io.BytesIO(data), ("text",)))
    assert sum(got) == 30_000
    assert caught.value.line == 30_001


def test_a_cut_character_at_the_end() -> None:
    with pytest.raises(DataError, match="x:2: not utf-8"):
        rows_of("a\né".encode()[:-1], name="x")


def test_a_line_without_end() -> None:
    with pytest.raises(DataError, match="are there no line ends"):
        rows_of(b"a\n" + b"b" * (MAX_CELL_CHARS + 70_000))


def test_unknown_encoding() -> None:
    with pytest.raises(SettingsError, match="unknown encoding 'klingon'"):
        rows_of(b"a", encoding="klingon")


def test_pairs_by_tab_or_by_field() -> None:
    columns = ("a", "b")
    assert rows_of(b"x\ty\n", columns) == [{"a": "x", "b": "y"}]
    assert rows_of(b'{"b": "y", "a": "x", "c": 1}\n', columns) == [{"b": "y", "a": "x", "c": 1}]
    with pytest.raises(DataError, match="no field 'b'"):
        rows_of(b'{"a": "x"}\n', columns)
    with pytest.raises(DataError, match="give text<TAB>second text"):
        rows_of(b"x\n", columns)
