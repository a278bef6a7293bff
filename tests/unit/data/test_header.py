from __future__ import annotations

from pathlib import Path

import pytest

from litebert.data.header import has_header, name_columns, plain_name
from litebert.errors import DataError

LONG = "a sentence that goes on for much longer than any column name would ever be"


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([["text", "label"], ["good one", "pos"]], True),
        ([["Review Text", "Sentiment"], ["good one", "pos"]], True),
        ([["#1 String", "Quality"], ["good one", "1"]], True),
        ([["frage", "absicht"], ["wo ist es", "suche"], ["was kostet es", "preis"]], True),
        ([["good movie", "pos"], ["bad movie", "neg"], ["so so", "pos"], ["fine", "neg"]], False),
        ([["3", "a title", LONG], ["4", "b title", LONG]], False),
        ([[LONG, "Sports"], [LONG + " again", "World"]], False),
        ([["gj04", "1", "", "Our friends came."], ["gj04", "0", "*", "Friends our came."]], False),
        ([["I love this, really!", "yes"], ["no way", "no"]], False),
        ([["label"]], True),
        ([["text", "0", "1"], ["x", "0", "1"]], False),
    ],
)
def test_header_or_not(records: list[list[str]], expected: bool) -> None:
    assert has_header(records) is expected


def test_names_are_stripped_and_blank_ones_numbered() -> None:
    assert name_columns([" text ", "", "label"], Path("x"), 1) == ["text", "column_2", "label"]


@pytest.mark.parametrize(
    ("header", "message"),
    [(["a", "b", "a"], "twice"), (["a", "b\x00"], "NUL"), (["a", "\udc80"], "undecodable")],
)
def test_unusable_names(header: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        name_columns(header, Path("x"), 3)
    assert caught.value.line == 3


def test_plain_name() -> None:
    assert plain_name("#1 String") == "1string" and plain_name("Gold_Label") == "goldlabel"
