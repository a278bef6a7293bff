"""Column files: columns, comments, documents, broken lines, encodings."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.readers import ReadOptions
from litebert.data.records import split_records
from litebert.data.tagged.conll import has_columns
from litebert.data.tagged.reader import read_tagged
from litebert.data.tagged.record import Span, TaggedText, split_words
from litebert.errors import DataError, SettingsError

SMALL = "Ada B-PER\nmet O\nBob B-PER\nLee I-PER\n\nParis B-LOC\n"


def write(folder: Path, text: str | bytes, name: str = "train.conll") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def read(
    path: Path, *, labelled: bool = True, **options: object
) -> tuple[list[TaggedText], tuple[str, ...]]:
    source = read_tagged(path, ReadOptions(**options), labelled)  # type: ignore[arg-type]
    return source.train.records, source.notes


def test_words_tags_and_places(tmp_path: Path) -> None:
    records, notes = read(write(tmp_path, SMALL))
    assert [r.text for r in records] == ["Ada met Bob Lee", "Paris"]
    assert records[0].words == ((0, 3), (4, 7), (8, 11), (12, 15))
    assert records[0].spans == (Span(0, 3, "PER"), Span(8, 15, "PER"))
    assert [r.line for r in records] == [1, 6]
    assert records[0].group != records[1].group
    assert any("IOB2" in note for note in notes)


@pytest.mark.parametrize(
    "text",
    [
        SMALL.replace(" ", "\t"),
        SMALL.replace("\n", "\r\n"),
        SMALL.replace("\n", "\r"),
        "\ufeff" + SMALL,
        SMALL.rstrip("\n"),
        "\n\n" + SMALL.replace("\n\n", "\n \t\n\n") + "\n\n",
        SMALL.replace(" ", "  \t "),
        SMALL.replace("Ada B", "Ada NNP B").replace("met O", "met VBD O").replace("Bob ", "Bob X ")
        .replace("Lee ", "Lee X ").replace("Paris ", "Paris X "),
        "".join(
            line.replace(" ", "\t3\t9\t") + "\n" if line else "\n" for line in SMALL.split("\n")
        ),
    ],
    ids=["tabs", "crlf", "cr", "bom", "no-end", "blank-lines", "blanks", "three", "four"],
)  # fmt: skip
def test_the_same_sentences_in_other_clothes(tmp_path: Path, text: str) -> None:
    records, _ = read(write(tmp_path, text))
    plain, _ = read(write(tmp_path, SMALL, "plain.conll"))
    assert [(r.text, r.spans) for r in records] == [(r.text, r.spans) for r in plain]


def test_latin_1_and_gzip(tmp_path: Path) -> None:
    text = "Zoë B-PER\nCafé B-ORG\nOO O\n" * 3
    records, _ = read(write(tmp_path, text.encode("latin-1")))
    assert records[0].text.startswith("Zoë Café")
    packed, _ = read(write(tmp_path, gzip.compress(SMALL.encode()), "a.conll.gz"))
    assert packed[0].text == "Ada met Bob Lee"
    told, _ = read(write(tmp_path, text.encode("utf-16")), encoding="utf-16")
    assert told[0].text == records[0].text


def test_documents_are_groups(tmp_path: Path) -> None:
    text = "a O\n\n-DOCSTART- -X- O\n\nb O\n\nc O\n-DOCSTART- O\nd O\n"
    records, notes = read(write(tmp_path, text))
    assert [r.text for r in records] == list("abcd")
    assert records[1].group == records[2].group
    assert len({r.group for r in records}) == 3
    assert "3 documents" in notes[0]
    for seed in range(5):
        train, held = split_records(records, 0.3, seed)
        assert not {r.group for r in train} & {r.group for r in held}
    one, _ = read(write(tmp_path, "-DOCSTART- O\n\nb O\n\nc O\n"))
    assert len({r.group for r in one}) == 2  # a single document says nothing


def test_equal_sentences_share_a_group(tmp_path: Path) -> None:
    records, _ = read(write(tmp_path, "a O\n\nb O\n\na O\n"))
    assert records[0].group == records[2].group != records[1].group


def test_comments_are_not_words_and_hash_words_are_no_comments(tmp_path: Path) -> None:
    text = "# id = 7\n# text B-a b c\nAda B-PER\n# O\n#tag O\n\n# O\nx O\n\n# two\ny O\n"
    records, notes = read(write(tmp_path, text))
    assert [r.text for r in records] == ["Ada # #tag", "# x", "y"]
    assert any("3 comment lines, first line 1" in note for note in notes)


def test_odd_words_are_kept(tmp_path: Path) -> None:
    words = ["\u00a0", "\u200b", "a\u00a0b", "\U0001f600", "\x1f", "[CLS]", "[", "{", '"']
    text = "".join(f"{word}\tO\n" for word in words) + "end\tB-X\n"
    records, _ = read(write(tmp_path, text))
    assert [records[0].text[a:b] for a, b in records[0].words] == [*words, "end"]
    assert records[0].spans == (Span(len(records[0].text) - 3, len(records[0].text), "X"),)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("Ada B-PER\nBob\nLee O\nx O\n", 2, "has 1 columns, most lines of this file have 2"),
        ("Ada B-PER\nBob x O\nLee O\nx O\n", 2, "has 3 columns"),
        ("a\tO\n\tO\nb\tO\n", 2, "the word, is empty"),
        ("a O\nb\x00 O\n", 2, "NUL"),
        ("a O\nb O\x00\n", 2, "NUL"),
        ("a B-X\nb O\n\nc I-X\n", 4, "mixes schemes"),
        ("a B-X\nb Y\n", 2, "none of the prefixes"),
        ("Ada\nmet\n\nBob\n", 1, "one column"),
        ("Ada B-PER é\n".encode() * 9 + b"b\xff x O\n", 10, "0xFF"),
    ],
)
def test_broken_lines_are_named_or_skipped(
    tmp_path: Path, text: str | bytes, line: int, words: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=words) as caught:
        read(path)
    assert caught.value.line == line
    assert caught.value.path == path


def test_skipped_sentences_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "a B-X\nb O\n\nc\n\nd I-X\n\ne O\n")
    source = read_tagged(path, ReadOptions(on_bad_row="skip"), True)
    assert [r.text for r in source.train.records] == ["a b", "e"]
    assert [(row.line) for row in source.train.skipped] == [4, 6]
    with pytest.raises(DataError, match="no usable text"):
        read(write(tmp_path, "a b c\nd\n"), on_bad_row="skip")


@pytest.mark.parametrize("text", ["", "\n\n", " \t\n", "# nothing\n\n"])
def test_files_without_words(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError):
        read(write(tmp_path, text))


def test_prediction_takes_words_without_tags_and_plain_texts(tmp_path: Path) -> None:
    words, _ = read(write(tmp_path, "Ada\nmet\n\nBob\n"), labelled=False)
    assert [(r.text, r.spans) for r in words] == [("Ada met", None), ("Bob", None)]
    tagged, _ = read(write(tmp_path, SMALL), labelled=False)
    assert tagged[0].spans == (Span(0, 3, "PER"), Span(8, 15, "PER"))
    texts, notes = read(write(tmp_path, "Ada met Bob.\n\nIn Paris, they say\n"), labelled=False)
    assert [r.text for r in texts] == ["Ada met Bob.", "In Paris, they say"]
    assert [texts[0].text[a:b] for a, b in texts[0].words] == ["Ada", "met", "Bob", "."]
    assert "one text a line" in notes[0]


def test_prediction_forgives_tags_that_make_no_sense(tmp_path: Path) -> None:
    records, _ = read(write(tmp_path, "a\tB-X\nb\tNN\n"), labelled=False)
    assert [(r.text, r.spans) for r in records] == [("a b", None)]


def test_a_format_without_tags_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="holds no tagged texts"):
        read(write(tmp_path, SMALL), format="parquet")


@given(st.text(max_size=60), st.booleans())
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, labelled: bool
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.conll"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        records, _ = read(path, labelled=labelled, on_bad_row="skip")
    except DataError:
        return
    for record in records:
        assert all(record.text[a:b] for a, b in record.words)


@given(st.text(max_size=40))
def test_words_of_a_text_cover_all_but_white_space(text: str) -> None:
    words = split_words(text)
    covered = {i for a, b in words for i in range(a, b)}
    assert all(a < b for a, b in words)
    assert len(covered) == sum(b - a for a, b in words)
    left = {text[i] for i in range(len(text)) if i not in covered}
    assert all(c.isspace() or c == "\u200b" for c in left)


@pytest.mark.parametrize(
    ("lines", "is_columns"),
    [
        (["Ada\tB-PER", "met\tO", "", "Bob\tB-PER"], True),
        (["New York\tB-LOC", "is\tO", "far\tO"], True),
        (["far\tB-work of art", "off\tO"], True),
        (["Ada\tmet Bob in Ulm"], False),  # its words behind the tab would be lost
        (["Ada met\tBob", "rain\tfell on Ulm"], False),
        (["Ada met Bob.\tYesterday", "", "all is well"], False),
        (["#Ulm is old", "#Bonn is not"], False),
        (["# a comment", "Ada O"], True),
        (["", "  "], True),
    ],
)
def test_texts_with_tabs_or_hashes_are_no_columns(lines: list[str], is_columns: bool) -> None:
    assert has_columns(lines) is is_columns
