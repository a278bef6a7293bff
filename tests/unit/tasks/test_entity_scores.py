"""Entity scores against a slow transcription of the CoNLL rules and seqeval's averages."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks.entity_scores import entity_scores, share_equal

TYPES = ("PER", "LOC", "ÄÖ")
TAG = st.sampled_from(["O", *(f"{mark}-{kind}" for kind in TYPES for mark in "BI")])


def chunks(tags: list[str], offset: int) -> set[tuple[int, int, str]]:
    """Entities of IOB tags: B begins; I begins behind O or another type; each runs over its I."""
    found: set[tuple[int, int, str]] = set()
    i = 0
    while i < len(tags):
        if tags[i] == "O":
            i += 1
            continue
        kind, j = tags[i][2:], i + 1
        while j < len(tags) and tags[j] == f"I-{kind}":
            j += 1
        found.add((offset + i, offset + j, kind))
        i = j
    return found


def slow_report(truth: list[list[str]], answers: list[list[str]]) -> dict[str, float]:
    """All sentences in one row with a gap between, as seqeval lays them."""
    true: dict[str, set[tuple[int, int]]] = defaultdict(set)
    given: dict[str, set[tuple[int, int]]] = defaultdict(set)
    offset = 0
    for a, b in zip(truth, answers, strict=True):
        for start, end, kind in chunks(a, offset):
            true[kind].add((start, end))
        for start, end, kind in chunks(b, offset):
            given[kind].add((start, end))
        offset += len(a) + 1
    kinds = sorted(set(true) | set(given))

    def ratio(part: float, whole: float) -> float:
        return part / whole if whole else 0.0

    def f1(p: float, r: float) -> float:
        return ratio(2 * p * r, p + r)

    rows: dict[str, tuple[float, float, float, int]] = {}
    for kind in kinds:
        right = len(true[kind] & given[kind])
        p, r = ratio(right, len(given[kind])), ratio(right, len(true[kind]))
        rows[kind] = (p, r, f1(p, r), len(true[kind]))
    right = sum(len(true[kind] & given[kind]) for kind in kinds)
    p = ratio(right, sum(len(given[kind]) for kind in kinds))
    r = ratio(right, sum(len(true[kind]) for kind in kinds))
    report = {"e_precision": p, "e_recall": r, "e_f1": f1(p, r)}
    support = sum(row[3] for row in rows.values())
    for i, measure in enumerate(("precision", "recall", "f1")):
        report[f"e_{measure}_macro"] = ratio(sum(row[i] for row in rows.values()), len(rows))
        weighted = sum(row[i] * row[3] for row in rows.values())
        report[f"e_{measure}_weighted"] = ratio(weighted, support)
        for kind, row in rows.items():
            report[f"e_{measure}/{kind}"] = row[i]
    return report


@given(st.lists(st.lists(st.tuples(TAG, TAG), max_size=10), max_size=6))
def test_scores_are_those_of_the_slow_report(sentences: list[list[tuple[str, str]]]) -> None:
    truth = [[a for a, _ in sentence] for sentence in sentences]
    answers = [[b for _, b in sentence] for sentence in sentences]
    scores = entity_scores(
        [chunks(tags, 0) for tags in truth], [chunks(tags, 0) for tags in answers], "e"
    )
    expected = slow_report(truth, answers)
    if not any(tag != "O" for tags in truth + answers for tag in tags):
        assert set(scores.values()) == {1.0}  # nothing to find, and nothing was found
        return
    assert scores == pytest.approx(expected)
    assert all(0.0 <= value <= 1.0 for value in scores.values())


def test_the_example_of_a_textbook() -> None:
    truth = [[(0, 3, "PER"), (8, 15, "LOC")], []]
    answers = [[(0, 3, "PER"), (8, 11, "LOC"), (0, 3, "PER")], [(0, 2, "ORG")]]
    scores = entity_scores(truth, answers, "entity")
    assert scores["entity_precision"] == pytest.approx(1 / 3)
    assert scores["entity_recall"] == 0.5
    assert scores["entity_f1"] == pytest.approx(0.4)
    assert scores["entity_f1_macro"] == pytest.approx(1 / 3)
    assert scores["entity_f1_weighted"] == 0.5
    assert scores["entity_f1/PER"] == 1.0
    assert scores["entity_f1/ORG"] == 0.0


def test_share_of_equal_pairs() -> None:
    assert share_equal(["a", "b"], ["a", "c"]) == 0.5
    assert share_equal([], []) == 0.0
