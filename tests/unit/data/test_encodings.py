from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.encodings import decode_text, detect_encoding
from litebert.data.tables import read_table
from litebert.errors import DataError, SettingsError

PATH = Path("made_up.csv")
ENGLISH = "text,label\n" + "".join(f"the quick brown fox number {i},a\n" for i in range(30))
GERMAN = "text,label\n" + "".join(f"Die Tür öffnet für Gäste {i} später,a\n" for i in range(30))
JAPANESE = "text,label\n" + "".join(f"今日は天気がいいですね{i},a\n" for i in range(30))
QUOTES = "text,label\n“curly” – it’s €5…,a\n" * 5


@pytest.mark.parametrize(
    ("text", "codec", "expected"),
    [
        (ENGLISH, "utf-8", "utf-8"),
        (GERMAN, "utf-8", "utf-8"),
        (GERMAN, "utf-8-sig", "utf-8"),
        (GERMAN, "latin-1", "cp1252"),
        (QUOTES, "cp1252", "cp1252"),
        (GERMAN, "utf-16", "utf-16-le"),
        (ENGLISH, "utf-16-le", "utf-16-le"),
        (ENGLISH, "utf-16-be", "utf-16-be"),
        (JAPANESE, "utf-16-le", "utf-16-le"),
        (JAPANESE, "utf-16-be", "utf-16-be"),
        ("text,label\nслово за словом,метка\n" * 9, "utf-16-le", "utf-16-le"),
        (JAPANESE, "utf-8", "utf-8"),
        (GERMAN, "utf-32", "utf-32-le"),
    ],
)
def test_encodings_are_detected(text: str, codec: str, expected: str) -> None:
    assert decode_text(text.encode(codec), None, PATH) == (text, expected)


def test_latin_1_where_windows_has_no_character() -> None:
    text = GERMAN + "\x81ü\n"
    assert decode_text(text.encode("latin-1"), None, PATH) == (text, "latin-1")


@given(
    st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), max_size=200
    )
)
def test_utf_8_and_marked_utf_16_always_come_back(text: str) -> None:
    for codec in ("utf-8", "utf-8-sig"):
        data = (ENGLISH + text).encode(codec)
        assert decode_text(data, None, PATH)[0] == ENGLISH + text
    for codec in ("utf-16", "utf-32"):
        assert decode_text(text.encode(codec), None, PATH)[0] == text


@given(st.binary(max_size=300))
def test_any_bytes_decode_or_give_a_data_error(data: bytes) -> None:
    try:
        text, name = decode_text(data, None, PATH)
    except DataError:
        return
    assert isinstance(text, str) and name


def test_marks_are_removed_however_many() -> None:
    assert decode_text(b"\xef\xbb\xbf\xef\xbb\xbftext", None, PATH) == ("text", "utf-8")
    assert decode_text(b"\xef\xbb\xbftext", "utf-8", PATH) == ("text", "utf-8")


def test_a_bad_byte_in_utf_8_blames_its_row(tmp_path: Path) -> None:
    path = tmp_path / "mostly.csv"
    path.write_bytes(
        "text,label\nschön,a\ngrün,b\n".encode() + b"bad \xff,a\n" + "süß,b\n".encode()
    )
    with pytest.raises(DataError, match="byte 0xFF is not UTF-8") as caught:
        read_table(path)
    assert (caught.value.line, caught.value.column) == (4, "text")
    table = read_table(path, on_bad_row="skip")
    assert len(table) == 3 and table.skipped[0].line == 4


def test_an_encoded_surrogate_blames_its_row(tmp_path: Path) -> None:
    path = tmp_path / "surrogate.csv"
    path.write_bytes(b"text,label\nfine,a\nbad \xed\xa0\x80 here,b\nfine too,b\n")
    table = read_table(path, on_bad_row="skip")
    assert [row.line for row in table.skipped] == [3] and len(table) == 2


def test_a_stray_nul_does_not_make_utf_16() -> None:
    assert decode_text(b"nul \x00 here", None, PATH) == ("nul \x00 here", "utf-8")


def test_told_encodings() -> None:
    text = "слово,a\n"
    assert decode_text(text.encode("cp1251"), "cp1251", PATH) == (text, "cp1251")
    assert decode_text(JAPANESE.encode("shift_jis"), "Shift_JIS", PATH)[0] == JAPANESE
    with pytest.raises(DataError, match="is not ascii") as caught:
        decode_text(b"a\nb\n\xff\n", "ascii", PATH)
    assert caught.value.line == 3


@pytest.mark.parametrize("name", ["klingon", "hex", "rot13", "a\x00b"])
def test_unknown_encodings(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be used"):
        decode_text(b"abc", name, PATH)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (("слово слово слово\n" * 9).encode("cp1251"), "tell its encoding"),
        (JAPANESE.encode("shift_jis"), "tell its encoding"),
        (bytes(range(256)) * 8, "looks binary"),
        (b"\x00" * 1000, "looks binary"),
        (b"\xff\xfea", "cut short"),
        (b"\x01\x02\x03\x04 plain", "looks binary"),
    ],
)
def test_what_cannot_be_told_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        detect_encoding(data, PATH)
