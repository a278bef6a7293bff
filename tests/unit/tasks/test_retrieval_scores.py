"""Ranks and what is made of them, against slow transcriptions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.tasks.retrieval_scores import (
    accuracy_at_1,
    find_ranks,
    mrr_at_10,
    searched,
)


@dataclass
class Texts:
    texts: tuple[str, ...]

    @property
    def anchor(self) -> str:
        return self.texts[0]


WORDS = st.sampled_from(["a", "b", "c", "d", "é", "", "東"])
RECORDS = st.lists(
    st.lists(WORDS, min_size=2, max_size=4).map(lambda t: Texts(tuple(t))), min_size=1, max_size=9
)


def slow_rank(records: list[Texts], row: int, score: dict[str, float]) -> int:
    """Rank of the best right text among all distinct texts, others first among equals."""
    anchor = records[row].anchor
    right = {record.texts[1] for record in records if record.anchor == anchor}
    everything = {text for record in records for text in record.texts[1:]}
    others = [t for t in everything if t not in right and t != anchor]
    best = max(score[text] for text in right)
    return 1 + sum(score[text] >= best for text in others)


@given(RECORDS, st.integers(0, 10_000), st.integers(1, 4))
def test_ranks_are_those_of_the_rules(records: list[Texts], seed: int, block: int) -> None:
    candidates, targets = searched(records)
    assert len(set(candidates)) == len(candidates)
    table = np.random.default_rng(seed).integers(0, 3, (len(records), len(candidates))) / 2.0
    before = table.copy()
    ranks, best = find_ranks(lambda rows: table[rows], targets, block=block)
    assert (table == before).all()
    for row, rank in enumerate(ranks.tolist()):
        scores = dict(zip(candidates, table[row], strict=True))
        assert rank == slow_rank(records, row, scores)
        allowed = {t: s for t, s in scores.items() if t != records[row].anchor} or scores
        right = {r.texts[1] for r in records if r.anchor == records[row].anchor}
        found = candidates[int(best[row])]
        assert found in right or scores[found] == max(allowed.values())


def test_vectors_that_are_all_alike_find_nothing() -> None:
    records = [Texts((f"anchor {i}", f"text {i}")) for i in range(30)]
    _, targets = searched(records)
    ranks, _ = find_ranks(lambda rows: np.ones((rows.stop - rows.start, 30)), targets)
    assert ranks.tolist() == [30] * 30
    assert accuracy_at_1(ranks) == 0.0 and mrr_at_10(ranks) == 0.0


def test_the_own_text_among_the_candidates_is_no_mistake() -> None:
    records = [Texts(("a", "b")), Texts(("b", "a"))]
    candidates, targets = searched(records)
    assert candidates == ["b", "a"]
    ranks, best = find_ranks(lambda rows: np.array([[0.2, 1.0], [1.0, 0.2]])[rows], targets)
    assert ranks.tolist() == [1, 1] and best.tolist() == [0, 1]


@given(st.lists(st.integers(1, 30), max_size=20))
def test_means_of_ranks(ranks: list[int]) -> None:
    hits = sum(1 for rank in ranks if rank == 1)
    reciprocal = sum(1 / rank for rank in ranks if rank < 11)
    count = max(1, len(ranks))
    assert accuracy_at_1(ranks) == pytest.approx(hits / count)
    assert mrr_at_10(ranks) == pytest.approx(reciprocal / count)
