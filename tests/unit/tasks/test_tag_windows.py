"""Words find their pieces by characters, and long texts are cut without losing a word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.tagged.record import join_words, split_words
from litebert.errors import SettingsError
from litebert.tasks.tag_windows import TagWindow, cut_windows, gather_words, match_pieces
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

TEXTS = ["ada met bob in paris", "the kettle is fine, is it not?", "no one met ada", "½ of it..."]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return train_vocabulary(TEXTS * 4, 60, tmp_path_factory.mktemp("vocabulary"))


def slow_first_pieces(
    words: tuple[tuple[int, int], ...], spans: list[tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    """First piece that shares a character with the word -> (start, end) of the joined words."""
    found: dict[int, tuple[int, int]] = {}
    for start, end in words:
        for number, (a, b) in enumerate(spans):
            if max(a, start) < min(b, end):
                known = found.get(number)
                found[number] = (start, end) if known is None else (known[0], end)
                break
    return found


@given(st.text(alphabet="ab ,.½\u200b\u00a0\x01東京é\U0001f600", max_size=30))
def test_words_find_their_first_piece(tokenizer: Tokenizer, text: str) -> None:
    words = split_words(text)
    spans = tokenizer.pieces(text).spans
    matched = match_pieces(words, spans)
    expected = slow_first_pieces(words, spans)
    assert matched.first.tolist() == list(expected)
    assert list(zip(matched.starts.tolist(), matched.ends.tolist(), strict=True)) == list(
        expected.values()
    )
    assert (matched.last >= matched.first).all()


def test_words_without_a_piece_break_nothing(tokenizer: Tokenizer) -> None:
    text, words = join_words(["ada", "\x01", "\u200b", "met", "\u00a0", "bob"])
    matched = match_pieces(words, tokenizer.pieces(text).spans)
    assert [text[a:b] for a, b in zip(matched.starts, matched.ends, strict=True)] == [
        "ada",
        "met",
        "bob",
    ]
    empty = match_pieces((), [])
    assert len(empty) == 0
    assert len(match_pieces(((0, 1),), [(0, 0)])) == 0


def word_logits(windows: list[TagWindow], outputs: list[np.ndarray]) -> np.ndarray:
    return gather_words(windows, outputs, 3)


@given(
    st.lists(
        st.sampled_from(["ada", "bob", "kettle", "½", "\x01", "...", "?!", "東京"]), max_size=30
    ),
    st.integers(3, 12),
    st.data(),
)
def test_every_word_belongs_to_one_window(
    tokenizer: Tokenizer, words: list[str], max_length: int, data: st.DataObject
) -> None:
    """With outputs that depend on the piece alone, windows give what the whole text gives."""
    stride = data.draw(st.integers(1, max_length - 2))
    text, places = join_words(words)
    (windows,) = cut_windows([text], [places], tokenizer, max_length=max_length, stride=stride)
    (whole,) = cut_windows([text], [places], tokenizer, max_length=10_000, stride=5_000)
    assert len(whole) == 1
    assert all(len(window.ids) <= max_length for window in windows)
    chosen = np.concatenate([window.chosen for window in windows])
    assert chosen.tolist() == list(range(len(whole[0].words)))
    table = np.random.default_rng(0).normal(size=(tokenizer.vocab_size, 3))
    cut = word_logits(windows, [table[window.ids] for window in windows])
    assert np.array_equal(cut, word_logits(whole, [table[whole[0].ids]]))


def test_a_word_takes_the_window_where_it_has_most_context(tokenizer: Tokenizer) -> None:
    text, places = join_words(["ada"] * 40)
    (windows,) = cut_windows([text], [places], tokenizer, max_length=12, stride=5)
    total = len(tokenizer.pieces(text).ids)
    for window in windows:
        start, stop = window.pieces
        for word in window.chosen.tolist():
            first, last = int(window.words.first[word]), int(window.words.last[word])

            def room(a: int, b: int, first: int = first, last: int = last) -> float:
                left = first - a if a else np.inf
                return min(left, b - 1 - last if b < total else np.inf)

            others = [room(*o.pieces) for o in windows if o.pieces[0] <= first < o.pieces[1]]
            assert room(start, stop) == max(others)


def test_a_word_longer_than_a_window_has_an_owner(tokenizer: Tokenizer) -> None:
    text = "x" * 200 + " ada"
    (windows,) = cut_windows([text], [split_words(text)], tokenizer, max_length=8, stride=3)
    assert np.concatenate([window.chosen for window in windows]).tolist() == [0, 1]


def test_lengths_that_cannot_be_kept(tokenizer: Tokenizer) -> None:
    for max_length, stride in ((2, 1), (8, 7), (8, 0)):
        with pytest.raises(SettingsError, match="max_length"):
            cut_windows(["a"], [((0, 1),)], tokenizer, max_length=max_length, stride=stride)


def test_real_words_of_a_published_vocabulary(shared: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(shared / "models" / "albert-english-vocab")
    text = "``Déjà vu'' costs $5.50 at O'Neill's 東京 café… 😀"
    matched = match_pieces(split_words(text), tokenizer.pieces(text).spans)
    found = [text[a:b] for a, b in zip(matched.starts, matched.ends, strict=True)]
    assert found[:4] == ["``", "Déjà", "vu", "''"]
    assert "O'Neill's" in found and "東京" in found
