from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.delimited import read_delimited, read_records, sniff_delimiter
from litebert.data.rows import BadRows
from litebert.errors import DataError, SettingsError

PATH = Path("made_up.csv")
CELL = st.text(
    st.one_of(
        st.sampled_from("\",;\t|\n 'aé字😀"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"),
    ),
    max_size=12,
)


def rows_of(text: str, **told: object) -> list[tuple[int, list[str]]]:
    _, rows, _ = read_delimited(text, BadRows(PATH), PATH, **told)  # type: ignore[arg-type]
    return [(row.line, list(row.values.values())) for row in rows]


@given(
    cells=st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=1, max_size=8),
    ending=st.sampled_from(["\n", "\r\n"]),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    last=st.booleans(),
)
def test_what_the_csv_module_writes_comes_back_with_exact_lines(
    cells: list[list[str]], ending: str, delimiter: str, last: bool
) -> None:
    out = io.StringIO(newline="")
    # CRLF in the dialect makes the writer quote cells with any line end.
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow(["text", "label"])
    expected = []
    for row in cells:
        line = out.getvalue().count("\n") + 1
        writer.writerow(row)
        expected.append((line, row))
    text = out.getvalue()
    if ending == "\n":
        text = text.replace("\r\n", "\n")
    if not last:
        text = text.removesuffix(ending)
    assert rows_of(text, delimiter=delimiter, quoting=True, header=True) == expected


@given(st.text(st.sampled_from('",\n\r ab;'), max_size=40))
def test_any_text_ends_in_rows_or_counted_skips(text: str) -> None:
    records = list(read_records(text, ",", quoting=True))
    lines = [record.line for record in records]
    assert lines == sorted(set(lines))
    bad_rows = BadRows(PATH, "skip")
    try:
        _, rows, _ = read_delimited(text, bad_rows, PATH, delimiter=",", header=False, quoting=True)
    except DataError:
        return
    assert len(rows) + len(bad_rows.skipped) == len(records)


@given(st.lists(st.lists(st.sampled_from(["a b", "x", "yes, no", "1"]), min_size=3, max_size=3),
                min_size=3, max_size=9), st.sampled_from([";", "\t", "|"]))  # fmt: skip
def test_the_delimiter_is_found(cells: list[list[str]], delimiter: str) -> None:
    text = f"text{delimiter}label{delimiter}id\n" + "\n".join(delimiter.join(r) for r in cells)
    assert sniff_delimiter(text) == delimiter


def test_a_bar_between_labels_is_no_delimiter() -> None:
    assert sniff_delimiter("text,labels\nhello there,a|b\nhow are you,a\nfine thanks,b|c\n") == ","


def test_crlf_lone_cr_and_lone_cr_inside_a_line() -> None:
    assert rows_of("text,label\r\na,1\r\nb,2\r\n") == [(2, ["a", "1"]), (3, ["b", "2"])]
    assert rows_of("text,label\ra,1\rb,2\r") == [(2, ["a", "1"]), (3, ["b", "2"])]
    assert rows_of("text,label\na\rb,1\n") == [(2, ["a\rb", "1"])]


def test_blank_lines_are_no_rows_but_count_as_lines() -> None:
    assert rows_of("text,label\n\n\na,1\n\nb,2\n\n") == [(4, ["a", "1"]), (6, ["b", "2"])]


def test_newlines_and_doubled_quotes_in_cells() -> None:
    text = 'text,label\n"one\ntwo ""so"" \nthree",1\nnext,2\n'
    assert rows_of(text) == [(2, ['one\ntwo "so" \nthree', "1"]), (5, ["next", "2"])]


def test_quotes_inside_an_unquoted_cell_are_ordinary() -> None:
    assert rows_of('text,label\na 5" screen,1\n') == [(2, ['a 5" screen', "1"])]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('text,label\na,1\n"b,2\nc,3\n', 3, "never closed"),
        ('text,label\na,1\n"b" x,2\n', 3, "text after the closing quote"),
        ("text,label\na,1\nb\n", 3, "too few"),
        ("text,label\na,1\n\nb,2,3\n", 4, "too many"),
    ],
)
def test_broken_records_name_their_line(text: str, line: int, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        rows_of(text)
    assert (caught.value.path, caught.value.line) == (PATH, line)
    bad_rows = BadRows(PATH, "skip")
    _, rows, _ = read_delimited(text, bad_rows, PATH)
    assert [row.line for row in bad_rows.skipped] == [line]
    assert rows[0].values == {"text": "a", "label": "1"}


def test_an_unclosed_quote_costs_one_line_only() -> None:
    bad_rows = BadRows(PATH, "skip")
    text = 'text,label\n"open,1\n' + "".join(f"row {i},2\n" for i in range(50))
    _, rows, _ = read_delimited(text, bad_rows, PATH)
    assert len(rows) == 50 and len(bad_rows.skipped) == 1


def test_quotes_of_a_tab_file_are_ordinary_when_they_do_not_match() -> None:
    text = 'label\ttext\n1\t" open here\n0\tsays "so" to\n'
    columns, rows, dialect = read_delimited(text, BadRows(PATH), PATH)
    assert not dialect.quoting and columns == ["label", "text"]
    assert rows[0].values["text"] == '" open here'
    quoted = 'label\ttext\n1\t"a ""b""\nc"\n0\td\n'
    _, rows, dialect = read_delimited(quoted, BadRows(PATH), PATH)
    assert dialect.quoting and rows[0].values["text"] == 'a "b"\nc'


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
def test_the_delimiter_is_one_character(delimiter: str) -> None:
    if not delimiter:
        delimiter = "::"
    with pytest.raises(SettingsError, match="must be one character"):
        rows_of("a,b\n", delimiter=delimiter)


def test_a_quadratic_pattern_stays_fast() -> None:
    bad_rows = BadRows(PATH, "skip")
    text = "text,label\n" + '"a\n' * 40_000 + "b,1\n"
    _, rows, _ = read_delimited(text, bad_rows, PATH, delimiter=",", header=True)
    assert len(rows) == 1


def test_the_separator_line_of_spreadsheets() -> None:
    assert rows_of("sep=;\r\ntext;label\r\na, b;1\r\n") == [(3, ["a, b", "1"])]


def test_a_second_header_is_a_bad_row() -> None:
    with pytest.raises(DataError, match="header once more") as caught:
        rows_of("text,label\na b,1\ntext,label\nc d,2\n")
    assert caught.value.line == 3


def test_a_broken_first_record_is_a_header_unless_told_otherwise() -> None:
    text = '"a" b,1\nfine,2\n'
    with pytest.raises(DataError, match="the header cannot be read"):
        rows_of(text)
    bad_rows = BadRows(PATH, "skip")
    _, rows, _ = read_delimited(text, bad_rows, PATH, header=False)
    assert [row.line for row in rows] == [2] and [row.line for row in bad_rows.skipped] == [1]
