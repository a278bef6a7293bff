"""The real multiple-choice files: the counts that their manifest states."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from litebert.data.choices import CHOICE_READERS, read_choices
from litebert.data.readers import ReadOptions
from litebert.errors import DataError

SKIP = ReadOptions(on_bad_row="skip")


def test_race_dev(shared: Path) -> None:
    source = read_choices(shared / "data" / "race" / "race-dev.tar.xz", ReadOptions(), True)
    records = source.train.records
    assert Counter(r.subset for r in records) == {"middle": 1436, "high": 3451}
    passages = Counter(r.group[:4] for r in {r.group: r for r in records}.values())
    assert passages == {"midd": 368, "high": 1021}
    assert len({r.id for r in records}) == len(records) == 4887
    assert all(len(r.choices) == 4 and r.context for r in records)


def test_dream(shared: Path) -> None:
    source = CHOICE_READERS["dream"][1](shared / "data" / "dream", ReadOptions(), True)
    assert source.eval is not None and source.test is not None
    parts = [s.records for s in (source.train, source.eval, source.test)]
    assert [len(records) for records in parts] == [6116, 2040, 2041]
    assert [len({r.group for r in records}) for records in parts] == [3869, 1288, 1287]


def test_arc(shared: Path) -> None:
    """102 + 23 rows of the copy lost their choices, 2 have the key E; 6 have three choices."""
    folder = shared / "data" / "arc"
    with pytest.raises(DataError, match="all choices are empty"):
        read_choices(folder, ReadOptions(), True)
    source = read_choices(folder, SKIP, True)
    assert source.test is not None
    assert Counter(r.subset for r in source.train.records) == {"easy": 2147, "challenge": 1096}
    assert Counter(r.subset for r in source.test.records) == {"easy": 549, "challenge": 294}
    assert Counter("key 'E'" in row.reason for row in source.train.skipped) == {True: 2, False: 125}
    assert sum(len(r.choices) == 3 for r in source.train.records) == 6


def test_commonsense(shared: Path) -> None:
    source = read_choices(shared / "data" / "commonsense_qa", ReadOptions(), True)
    assert len(source.train.records) == 1221
    assert Counter(len(r.choices) for r in source.train.records) == {5: 1221}


def test_jcommonsenseqa(shared: Path) -> None:
    folder = shared / "data" / "jglue" / "jcommonsenseqa-v1.3"
    source = CHOICE_READERS["jcommonsenseqa"][1](folder, ReadOptions(), True)
    assert source.eval is not None
    assert (len(source.train.records), len(source.eval.records)) == (8939, 1119)
    valid = read_choices(folder / "valid-v1.3.json", ReadOptions(), True).train.records
    assert valid == source.eval.records
    assert Counter(r.label for r in valid) == {2: 240, 1: 237, 3: 228, 0: 216, 4: 198}
