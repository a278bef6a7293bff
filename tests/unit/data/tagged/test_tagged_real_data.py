"""Real public files: the counts that their manifest states, and their quirks."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from litebert.data.readers import ReadOptions
from litebert.data.records import RecordSource, RecordSplit
from litebert.data.tagged.reader import read_intents_and_slots, read_tagged
from litebert.data.tagged.record import TaggedText


def counts(split: RecordSplit[TaggedText] | None) -> tuple[int, int, int]:
    assert split is not None and not split.skipped
    records = split.records
    spans = sum(len(record.spans or ()) for record in records)
    return len(records), sum(len(record.words) for record in records), spans


def check(source: RecordSource[TaggedText]) -> None:
    for split in (source.train, source.eval, source.test):
        for record in split.records if split else ():
            ends = 0
            assert record.spans is not None
            borders = {a for a, _ in record.words}, {b for _, b in record.words}
            for span in record.spans:
                assert span.start >= ends and span.start in borders[0] and span.end in borders[1]
                ends = span.end


@pytest.mark.parametrize(
    ("member", "sentences", "words", "entities", "scheme"),
    [
        ("esp.testa", 1915, 52923, 4352, "4,351 of 4,352"),
        ("esp.testb", 1517, 51533, 3559, "3,558 of 3,559"),
        ("ned.testa", 2895, 37687, 2616, "IOB2: all 2,616"),
    ],
)
def test_conll_2002(
    shared: Path,
    tmp_path: Path,
    member: str,
    sentences: int,
    words: int,
    entities: int,
    scheme: str,
) -> None:
    with zipfile.ZipFile(shared / "data" / "nltk" / "conll2002.zip") as archive:
        archive.extract(f"conll2002/{member}", tmp_path)
    source = read_tagged(tmp_path / "conll2002" / member, ReadOptions(), True)
    assert counts(source.train) == (sentences, words, entities)
    assert any(scheme in note for note in source.notes)
    assert any("é" in record.text for record in source.train.records)  # Latin-1 was found
    check(source)
    groups = len({record.group for record in source.train.records})
    assert (groups == 74) == member.startswith("ned")


def test_wikigold(shared: Path) -> None:
    source = read_tagged(shared / "data" / "wikigold", ReadOptions(), True)
    assert counts(source.train) == (1696, 39007, 3558)
    assert len({record.group for record in source.train.records}) == 145
    assert any(note.endswith("looks the same)") for note in source.notes)
    check(source)


def test_wnut_17(shared: Path) -> None:
    source = read_tagged(shared / "data" / "wnut17", ReadOptions(), True)
    assert counts(source.train) == (3394, 62730, 1975)
    assert counts(source.eval) == (1009, 15733, 836)
    assert counts(source.test) == (1287, 23394, 1079)
    assert not any("comment" in note for note in source.notes)  # `#` is a word there
    check(source)


def test_anem(shared: Path) -> None:
    source = read_tagged(shared / "data" / "anem_ner", ReadOptions(), True)
    assert counts(source.train) == (2815, 71697, 1879)
    assert source.eval is None
    assert counts(source.test) == (1882, 45939, 1256)
    check(source)


@pytest.mark.parametrize(
    ("name", "sizes", "intents", "tags"),
    [("atis", (4478, 500, 893), 21, 79), ("snips", (13084, 700, 700), 7, 39)],
)
def test_intents_with_slots(
    shared: Path, name: str, sizes: tuple[int, int, int], intents: int, tags: int
) -> None:
    source = read_intents_and_slots(shared / "data" / name, ReadOptions(), True)
    assert source.eval and source.test
    assert tuple(len(s.records) for s in (source.train, source.eval, source.test)) == sizes
    assert len({record.intent for record in source.train.records}) == intents
    assert len({s.label for r in source.train.records for s in r.spans or ()}) == tags
    check(source)
