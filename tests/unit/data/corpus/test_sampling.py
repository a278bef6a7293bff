"""Samples of a stream: bounded, repeatable, fair."""

from __future__ import annotations

from collections import Counter

from litebert.data.corpus.sampling import TextSample, passages
from litebert.text.sentences import sentence_splitter

PASSAGES = 2_000
KEPT = 500
FAIR_SIGMAS = 4.0
"""A share further off than this many standard deviations would be no accident."""


def sample(seed: int, max_bytes: int = KEPT * 6) -> TextSample:
    found = TextSample(max_bytes, seed)
    for number in range(PASSAGES):
        found.add(f"n{number:05}")
    return found


def test_everything_is_kept_while_it_fits() -> None:
    found = sample(1, PASSAGES * 6)
    assert found.is_whole and list(found.texts()) == [f"n{n:05}" for n in range(PASSAGES)]


def test_a_sample_is_bounded_ordered_and_the_same_for_a_seed() -> None:
    found = sample(1)
    texts = list(found.texts())
    assert texts == sorted(texts) and len(texts) == len(found) == KEPT and not found.is_whole
    assert found.num_bytes == KEPT * 6 and found.seen_bytes == PASSAGES * 6
    assert texts == list(sample(1).texts()) != list(sample(2).texts())


def test_every_passage_has_the_same_chance() -> None:
    counts: Counter[int] = Counter()
    for seed in range(40):
        counts.update(int(text[1:]) * 4 // PASSAGES for text in sample(seed).texts())
    expected = 40 * KEPT / 4
    spread = (expected * 0.75) ** 0.5
    assert all(abs(counts[quarter] - expected) < FAIR_SIGMAS * spread for quarter in range(4))


def test_sentences_bound_it_too() -> None:
    found = TextSample(1 << 20, 1, max_sentences=100)
    for number in range(400):
        found.add(f"{number}", sentences=3)
    assert 90 < found.num_sentences <= 100


def test_one_passage_stays_even_if_it_is_too_large() -> None:
    found = TextSample(10, 1)
    found.add("ä" * 100)
    assert len(found) == 1 and found.num_bytes == 200


def test_passages_end_at_sentences_and_lose_nothing() -> None:
    text = "\n\n".join(f"This is sentence {number} of the text." for number in range(200))
    text += "\n\n" + "endless " * 2_000 + "\n\n" + "x" * 9_000
    found = list(passages(text, sentence_splitter("paragraphs")))
    assert "".join("".join(found_text.split()) for found_text, _ in found) == "".join(text.split())
    assert all(len(passage) <= 4_900 for passage, _ in found)
    assert sum(count for _, count in found[:9]) > 100
