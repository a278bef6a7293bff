"""JSON with spans: JSON lines, doccano, Label Studio, spaCy; positions in characters and UTF-16."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.readers import ReadOptions
from litebert.data.tagged.offsets import (
    OffsetTally,
    RawSpan,
    SpanFaultError,
    check_spans,
    read_span,
)
from litebert.data.tagged.reader import read_intents_and_slots, read_tagged
from litebert.data.tagged.record import Span, TaggedText
from litebert.errors import DataError

TEXT = "Ada met Bob Lee in Paris."
SPANS = (Span(0, 3, "PER"), Span(8, 15, "PER"), Span(19, 24, "LOC"))
LISTS = [list(span) for span in SPANS]


def as_lines(*items: Any) -> str:
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def read(
    folder: Path, text: str, name: str = "x.json", *, labelled: bool = True, **options: Any
) -> tuple[list[TaggedText], tuple[str, ...]]:
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    source = read_tagged(path, ReadOptions(**options), labelled)
    return source.train.records, source.notes


def named(
    start: str, end: str, label: str, spans: tuple[Span, ...] = SPANS
) -> list[dict[str, Any]]:
    return [{start: s.start, end: s.end, label: s.label, "id": 9} for s in spans]


def studio(text: str, spans: list[dict[str, Any]], **task: Any) -> dict[str, Any]:
    results = [
        {"from_name": "label", "to_name": "text", "type": "labels", "id": str(i), "value": value}
        for i, value in enumerate(spans)
    ]
    return {
        "id": 5,
        "data": {"text": text},
        "annotations": [{"id": 1, "was_cancelled": False, "result": results}],
    } | task


def value(text: str, start: int, end: int, label: str, said: str | None = None) -> dict[str, Any]:
    said = text[start:end] if said is None else said
    return {"start": start, "end": end, "text": said, "labels": [label]}


FILES: dict[str, str] = {
    "lists": as_lines({"text": TEXT, "spans": LISTS}, {"text": "x", "spans": []}),
    "objects": as_lines(
        {"text": TEXT, "entities": named("start", "end", "label")}, {"text": "x", "entities": []}
    ),
    "doccano": as_lines(
        {"id": 1, "text": TEXT, "label": LISTS, "Comments": []},
        {"id": 2, "text": "x", "label": [], "Comments": []},
    ),
    "doccano relations": as_lines(
        {"id": 1, "text": TEXT, "relations": [],
         "entities": named("start_offset", "end_offset", "label")},
        {"id": 2, "text": "x", "relations": [], "entities": []},
    ),
    "one line": as_lines({"text": TEXT, "spans": LISTS}),
    "document": json.dumps([{"text": TEXT, "spans": LISTS}, {"text": "x", "spans": []}], indent=1),
    "crlf": as_lines({"text": TEXT, "spans": LISTS}).replace("\n", "\r\n"),
    "bom": "\ufeff" + as_lines({"text": TEXT, "spans": LISTS}),
    "label studio": json.dumps([studio(TEXT, [value(TEXT, *span) for span in SPANS])]),
    "label studio min": json.dumps(
        [{"id": 3, "text": TEXT, "label": [value(TEXT, *span) for span in SPANS]}]
    ),
    "spacy": json.dumps([[TEXT, {"entities": LISTS}], ["x", {"entities": []}]]),
    "spacy annotator": json.dumps(
        {"classes": ["PER", "LOC"], "annotations": [[TEXT, {"entities": LISTS}], None]}
    ),
    "spacy documents": json.dumps(
        [{"id": 4, "paragraphs": [{"raw": TEXT, "entities": LISTS, "sentences": []}]}]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_spans(tmp_path: Path, name: str) -> None:
    records, _ = read(tmp_path, FILES[name])
    assert records[0].text == TEXT
    assert records[0].spans == SPANS
    assert [TEXT[a:b] for a, b in records[0].words] == [
        "Ada",
        "met",
        "Bob",
        "Lee",
        "in",
        "Paris",
        ".",
    ]
    assert all(record.spans == () for record in records[1:])


def test_words_with_tags(tmp_path: Path) -> None:
    row = {"id": "7", "tokens": ["Ada", "met", "Bob"], "ner_tags": ["B-PER", "O", "B-PER"]}
    records, notes = read(tmp_path, as_lines(row, row | {"id": "8"}))
    assert records[0].spans == (Span(0, 3, "PER"), Span(8, 11, "PER"))
    assert [r.id for r in records] == ["7", "8"]
    assert records[0].group == records[1].group
    assert any("IOB2" in note for note in notes)


EMOJI = "\U0001f600 Ada met \U0001f680\U0001f680 Bob"


def utf16(text: str, position: int) -> int:
    return len(text[:position].encode("utf-16-le")) // 2


def test_label_studio_counts_in_utf_16(tmp_path: Path) -> None:
    places = [(2, 5), (13, 16)]
    spans = [value(EMOJI, utf16(EMOJI, a), utf16(EMOJI, b), "PER", EMOJI[a:b]) for a, b in places]
    expected = tuple(Span(a, b, "PER") for a, b in places)
    records, notes = read(tmp_path, json.dumps([studio(EMOJI, spans)]))
    assert records[0].spans == expected
    assert any("2 spans counted in UTF-16 units" in note for note in notes)
    for span in spans:
        del span["text"]
    assert read(tmp_path, json.dumps([studio(EMOJI, spans)]))[0][0].spans == expected
    plain = [value(EMOJI, a, b, "PER") for a, b in places]  # some exports count characters
    assert read(tmp_path, json.dumps([studio(EMOJI, plain)]))[0][0].spans == expected


def test_doccano_counts_characters_and_says_so(tmp_path: Path) -> None:
    records, notes = read(tmp_path, as_lines({"text": EMOJI, "label": [[13, 16, "PER"]]}))
    assert records[0].spans == (Span(13, 16, "PER"),)
    assert any("characters (code points); 1 texts" in note for note in notes)
    surface = [{"start": utf16(EMOJI, 13), "end": utf16(EMOJI, 16), "label": "PER", "text": "Bob"}]
    assert read(tmp_path, as_lines({"text": EMOJI, "spans": surface}))[0][0].spans == (
        Span(13, 16, "PER"),
    )


@given(st.text(alphabet="a \U0001f600é", min_size=1, max_size=20), st.data())
def test_utf_16_places_of_any_text(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    raw = RawSpan(utf16(text, start), utf16(text, end), "X")
    if not text[start:end].strip():
        with pytest.raises(SpanFaultError, match="white"):
            check_spans(text, [raw], "UTF-16", OffsetTally())
        return
    (span,) = check_spans(text, [raw], "UTF-16", OffsetTally())
    assert text[span.start : span.end] == text[start:end].strip()


def test_mended_spans_are_counted(tmp_path: Path) -> None:
    spans = [[0, 4, "PER"], [7, 15, "PER"], [7, 15, "PER"]]
    records, notes = read(tmp_path, as_lines({"text": TEXT, "spans": spans}))
    assert records[0].spans == SPANS[:2]
    assert any("3 spans trimmed" in note for note in notes)
    assert any("1 spans that occur twice" in note for note in notes)


NESTED: Any = "deep"
for _ in range(50):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"text": TEXT, "spans": [[0, 3, "A"], [2, 7, "B"]]}, "overlap"),
        ({"text": TEXT, "spans": [[0, 15, "A"], [4, 7, "B"]]}, "overlap"),
        ({"text": TEXT, "spans": [[0, 3, "A"], [0, 3, "B"]]}, "overlap"),
        ({"text": TEXT, "spans": [[20, 99, "A"]]}, "outside the text of 25"),
        ({"text": TEXT, "spans": [[-1, 3, "A"]]}, "outside"),
        ({"text": TEXT, "spans": [[3, 3, "A"]]}, "outside"),
        ({"text": TEXT, "spans": [[5, 3, "A"]]}, "outside"),
        ({"text": TEXT, "spans": [[10**30, 10**31, "A"]]}, "outside"),
        ({"text": TEXT, "spans": [[3, 4, "A"]]}, "white space"),
        ({"text": TEXT, "spans": [["0", 3, "A"]]}, "whole numbers"),
        ({"text": TEXT, "spans": [[0.0, 3, "A"]]}, "whole numbers"),
        ({"text": TEXT, "spans": [[True, 3, "A"]]}, "whole numbers"),
        ({"text": TEXT, "spans": [[0, 3]]}, "list of 2"),
        ({"text": TEXT, "spans": [[0, 3, ""]]}, "no usable label"),
        ({"text": TEXT, "spans": [[0, 3, {}]]}, "no usable label"),
        ({"text": TEXT, "spans": [{"start": 0, "end": 3, "labels": ["A", "B"]}]}, "2 labels"),
        ({"text": TEXT, "spans": [{"start": 0, "end": 3, "label": "A", "text": "Bob"}]}, "says 'Bob'"),
        ({"text": TEXT, "spans": [7]}, "or an object"),
        ({"text": TEXT, "spans": "PER"}, "spans are a list"),
        ({"text": TEXT, "label": "pos"}, "spans are a list"),
        ({"text": TEXT, "spans": NESTED}, "list of 1"),
        ({"text": TEXT}, "no list of spans"),
        ({"text": "  ", "spans": []}, "no text"),
        ({"text": 5, "spans": []}, "no text"),
        ({"words": 3, "tags": []}, "list of words"),
        ({"words": ["a", ""], "tags": ["O", "O"]}, "list of words"),
        ({"words": ["a"], "tags": [0]}, "2|names such as"),
        ({"words": ["a"], "tags": ["O", "O"]}, "list of 1 names"),
        ({"words": ["a"]}, "no tags"),
    ],
)  # fmt: skip
def test_spans_that_cannot_be_used(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    good = (
        {"words": ["a"], "tags": ["B-X"]}
        if "words" in row
        else {"text": "x", "spans": [[0, 1, "X"]]}
    )
    text = as_lines(good, row)
    with pytest.raises(DataError, match=words) as caught:
        read(tmp_path, text)
    assert caught.value.line == 2
    records, _ = read(tmp_path, text, on_bad_row="skip")
    assert len(records) == 1


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([studio("x", []) | {"annotations": []}], "no finished annotation"),
        ([studio("x", []), 7], "object with 'data'"),
        ([studio("x", []) | {"data": {"image": 3}}], "no text"),
        ([studio("x", [{"start": "/div[1]", "end": 2, "labels": ["A"]}])], "whole numbers"),
        ([studio("x", [{"start": 0, "end": 1, "labels": []}])], "0 labels"),
        ([["x", {"entities": None}], ["y", {}]], "no list of entities"),
        ([["x", {"entities": []}], ["y"]], "an item is"),
        ([["x", {"entities": []}], [3, {}]], "an item is"),
        ([["x", {"entities": []}], [" ", {"entities": []}]], "empty"),
        ([{"paragraphs": [7]}], "an item is"),
        ([["x\x00y", {"entities": []}]], "NUL"),
        ([["x\ud800", {"entities": []}]], "surrogate"),
    ],
)
def test_exports_that_cannot_be_used(tmp_path: Path, document: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read(tmp_path, json.dumps(document))


def test_label_studio_takes_the_first_finished_work(tmp_path: Path) -> None:
    task = studio(TEXT, [value(TEXT, 0, 3, "PER")])
    work = task["annotations"][0]
    choice = {"type": "choices", "value": {"choices": ["news"]}}
    relation = {"type": "relation", "from_id": "1", "to_id": "2"}
    task["annotations"] = [
        {"was_cancelled": True, "result": []},
        work | {"result": [*work["result"], choice, relation, 3]},
        {"result": []},
    ]
    records, notes = read(tmp_path, json.dumps([task]))
    assert records[0].spans == SPANS[:1]
    assert any("1 tasks with several annotations" in note for note in notes)
    assert any("1 results that are no spans" in note for note in notes)
    unlabelled, _ = read(
        tmp_path, json.dumps([studio("x", []) | {"annotations": []}]), labelled=False
    )
    assert unlabelled[0].spans is None


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "a", "spans": [[0,',
        '[{"text": "a"',
        '[["a", {"entities": [[0, 1',
        '{"text": "a", "text": "b", "spans": []}',
        "[" * 100_000,
        '{"a":' * 100_000 + "1",
        '[{"text": "a", "spans": [[' + "9" * 5000 + ', 1, "A"]]}]',
        "[]",
        "{}",
        "null",
    ],
    ids=[
        "cut",
        "cut-list",
        "cut-spacy",
        "twice",
        "deep",
        "deep-object",
        "huge",
        "empty",
        "object",
        "null",
    ],
)
def test_damaged_json_is_a_located_fault(tmp_path: Path, text: str) -> None:
    for options in ({}, {"on_bad_row": "skip"}, {"format": "json"}, {"format": "jsonl"}):
        with pytest.raises(DataError):
            read(tmp_path, text, **options)


def test_intents_are_needed_where_they_are_learnt(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(
        as_lines(
            {"text": TEXT, "spans": LISTS, "intent": "meet", "doc_id": 4},
            {"text": "x", "spans": []},
        )
    )
    with pytest.raises(DataError, match="no intent") as caught:
        read_intents_and_slots(path, ReadOptions(), True)
    assert caught.value.line == 2
    source = read_intents_and_slots(path, ReadOptions(), False)
    assert [r.intent for r in source.train.records] == ["meet", None]
    assert source.train.records[0].group == "4"


def test_a_span_of_another_shape() -> None:
    assert read_span((1, 2, 3)) == RawSpan(1, 2, "3")
    assert read_span({"begin": 1, "stop": 2, "type": "A", "word": "x"}) == RawSpan(1, 2, "A", "x")
    with pytest.raises(SpanFaultError):
        read_span(None)
