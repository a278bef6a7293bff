"""Constrained decoding against all sequences, and entities against a slow reading."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError
from litebert.tasks.tag_decoding import TagScheme, TagSet, softmax_rows


def may_follow(before: str, after: str, scheme: str) -> bool:
    """The table of the scheme, written down; "start" and "end" stand for the borders."""
    opens = ("B", "I") if before not in ("start", "O") and before[0] in "BI" else ()
    if after != "end" and after[0] in "IE":
        return bool(opens) and before[2:] == after[2:]
    return scheme == "iob2" or not opens


def is_allowed(names: list[str], scheme: str) -> bool:
    steps = zip(["start", *names], [*names, "end"], strict=True)
    return all(may_follow(a, b, scheme) for a, b in steps)


CASES = [(scheme, types) for scheme in ("iob2", "iobes") for types in (("X",), ("X", "Y"))]


@pytest.mark.parametrize(("scheme", "types"), CASES)
@given(st.integers(0, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_the_best_allowed_sequence_is_found(
    scheme: TagScheme, types: tuple[str, ...], words: int, seed: int, coarse: bool
) -> None:
    tags = TagSet(types, scheme)
    logits = np.random.default_rng(seed).normal(size=(words, len(tags))) * 3
    if coarse:
        logits = logits.round()  # ties
    (found,) = tags.decode([logits])
    names = [tags.names[tag] for tag in found]
    assert is_allowed(names, scheme)
    assert tags.is_valid(found)

    def total(path: tuple[int, ...]) -> float:
        return float(sum(logits[i, tag] for i, tag in enumerate(path)))

    every = [
        path
        for path in product(range(len(tags)), repeat=words)
        if is_allowed([tags.names[tag] for tag in path], scheme)
    ]
    assert total(tuple(found.tolist())) == pytest.approx(max(map(total, every)))


@pytest.mark.parametrize(("scheme", "types"), CASES)
def test_validity_is_that_of_the_table(scheme: TagScheme, types: tuple[str, ...]) -> None:
    tags = TagSet(types, scheme)
    for words in range(4):
        for path in product(range(len(tags)), repeat=words):
            names = [tags.names[tag] for tag in path]
            assert tags.is_valid(np.array(path, np.int64)) == is_allowed(names, scheme)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(0, 1000))
def test_texts_decoded_together_are_as_alone(lengths: list[int], seed: int) -> None:
    tags = TagSet(("A", "B"), "iobes")
    rng = np.random.default_rng(seed)
    texts = [rng.normal(size=(length, len(tags))) for length in lengths]
    together = tags.decode(texts)
    for text, path in zip(texts, together, strict=True):
        assert path.tolist() == tags.decode([text])[0].tolist()


def test_small_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = TagSet(("A", "B", "C"))
    rng = np.random.default_rng(0)
    texts = [rng.normal(size=(length, len(tags))) for length in (5, 40, 1, 0, 17, 17)]
    whole = tags.decode(texts)
    monkeypatch.setattr("litebert.tasks.tag_decoding._BATCH_WORDS", 7)
    assert [a.tolist() for a in tags.decode(texts)] == [a.tolist() for a in whole]


def test_switched_off_each_word_answers_alone() -> None:
    tags = TagSet(("X",))
    logits = np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 9.0]])
    assert tags.decode([logits], constrained=False)[0].tolist() == [2, 2]
    assert tags.decode([logits])[0].tolist() == [1, 2]
    assert tags.entities(np.array([2, 2])) == [(0, 2, "X")]


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
@given(
    st.integers(1, 12),
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["X", "Y"])), max_size=5
    ),
)
def test_entities_survive_encoding(
    scheme: TagScheme, words: int, cuts: list[tuple[int, int, str]]
) -> None:
    found: list[tuple[int, int, str]] = []
    position = 0
    for gap, size, kind in cuts:
        if position + gap + size > words:
            break
        found.append((position + gap, position + gap + size, kind))
        position += gap + size
    tags = TagSet(("X", "Y"), scheme)
    encoded = tags.encode(found, words)
    assert is_allowed([tags.names[tag] for tag in encoded], scheme)
    assert tags.entities(encoded) == found


def test_a_type_that_was_not_trained_has_no_label() -> None:
    tags = TagSet(("X",))
    assert tags.encode([(0, 2, "Z"), (2, 3, "X")], 4).tolist() == [-100, -100, 1, 0]
    assert tags.inside.tolist() == [0, 2, 2]
    assert TagSet(("X",), "iobes").inside.tolist() == [0, 2, 2, 2, 2]


def test_logits_that_do_not_fit() -> None:
    tags = TagSet(("X",))
    with pytest.raises(DataError, match="do not belong together"):
        tags.decode([np.zeros((2, 5))])
    with pytest.raises(DataError, match="diverged"):
        tags.decode([np.full((2, 3), np.nan)])


@given(st.integers(0, 5), st.integers(0, 99))
def test_softmax_adds_up_to_one(rows: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32) * 1000
    assert softmax_rows(values).sum(axis=1) == pytest.approx(np.ones(rows))
