"""Repeated documents: exact and nearly, remembered on disk, forgotten from where a run ended."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from litebert.data.document_signatures import band_key_table, document_signatures, similarity
from litebert.data.near_duplicates import NUM_HASHES, jaccard
from litebert.data.seen_texts import DUPLICATE, NEAR_DUPLICATE, SeenTexts
from litebert.errors import DataError

WORDS = ["".join(random.Random(i).choices("abcdefghijklmnoprstu", k=3 + i % 6)) for i in range(900)]
ESTIMATE_ATOL = 0.25
"""Four standard deviations of an estimate from 64 hashes."""


def text(seed: int, words: int = 200) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def changed(original: str, share: float) -> str:
    rng = random.Random(7)
    return " ".join(rng.choice(WORDS) if rng.random() < share else w for w in original.split(" "))


def add(seen: SeenTexts, number: int, content: str) -> str | None:
    signature = document_signatures([content])
    bands = band_key_table(signature)[0].tolist()
    return seen.add(number, content.encode()[:64], signature[0], bands)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 1.0])
def test_signatures_estimate_the_similarity(share: float) -> None:
    first, second = text(1), changed(text(1), share)
    signatures = document_signatures([first, second])
    assert signatures.shape == (2, NUM_HASHES)
    found = similarity(signatures[0], signatures[1])
    assert found == pytest.approx(jaccard(first, second), abs=ESTIMATE_ATOL)


def test_the_end_of_a_long_document_counts() -> None:
    start = text(1, 60_000)
    signatures = document_signatures([start + text(2, 60_000), start + text(3, 60_000), start])
    assert similarity(signatures[0], signatures[1]) < 0.99


def test_signatures_do_not_depend_on_company() -> None:
    texts = ["", "a", "short one", text(4)]
    together = document_signatures(texts)
    for row, alone in zip(together, texts, strict=True):
        assert row.tolist() == document_signatures([alone])[0].tolist()


def test_exact_and_near_repeats_are_told(tmp_path: Path) -> None:
    with SeenTexts(tmp_path / "seen", threshold=0.8) as seen:
        assert add(seen, 0, text(1)) is None
        assert add(seen, 1, text(2)) is None
        assert add(seen, 2, text(1)) == DUPLICATE
        assert add(seen, 3, "Prefix " + changed(text(1), 0.01)) == NEAR_DUPLICATE
        assert add(seen, 4, "Prefix " + changed(text(1), 0.6)) is None


def test_exact_alone_does_not_look_for_near_ones(tmp_path: Path) -> None:
    with SeenTexts(tmp_path / "seen") as seen:
        assert seen.add(0, b"a") is None
        assert seen.add(1, b"a") == DUPLICATE
        assert seen.add(2, b"b") is None


def test_what_was_not_committed_is_forgotten(tmp_path: Path) -> None:
    with SeenTexts(tmp_path / "seen") as seen:
        add(seen, 0, text(1))
        seen.commit()
        add(seen, 1, text(2))
    with SeenTexts(tmp_path / "seen") as seen:
        assert add(seen, 1, text(2)) is None
        seen.commit()
        add(seen, 2, text(3))
        seen.commit()
    with SeenTexts(tmp_path / "seen") as seen:
        seen.forget_from(2)
        assert add(seen, 2, text(3)) is None
        assert add(seen, 3, text(2)) == DUPLICATE


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "seen").write_bytes(b"no database at all" * 100)
    with pytest.raises(DataError, match="seen: the list of seen documents is damaged"):
        SeenTexts(tmp_path / "seen")


def test_a_disk_that_refuses_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="unable to open"):
        SeenTexts(tmp_path / "missing" / "seen")


def test_a_full_disk_has_its_number(tmp_path: Path) -> None:
    with SeenTexts(tmp_path / "seen") as seen:
        seen._base.execute("COMMIT")
        seen._base.execute("PRAGMA max_page_count = 8")
        seen._base.execute("BEGIN")
        with pytest.raises(OSError, match="full") as caught:
            for number in range(500):
                add(seen, number, text(number))
        assert caught.value.errno == 28


def test_bands_are_equal_where_signatures_are() -> None:
    signatures = document_signatures([text(1), text(1), text(2)])
    table = band_key_table(signatures)
    assert table.dtype == np.int64
    assert (table[0] == table[1]).all()
    assert not (table[0] == table[2]).any()
    assert sqlite3.sqlite_version_info >= (3, 8, 2)  # tables without row ids
