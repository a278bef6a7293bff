"""The nearest texts are exact, ties are stable, and vectors on disk are used only if they fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.errors import DataError, SettingsError
from litebert.recipes.embed import Embedder, EmbedOptions
from litebert.recipes.search import (
    INDEX_FOLDER,
    Index,
    nearest,
    open_index,
    read_corpus,
    search,
)

LINES = ["the fine kettle is late", "", "a broken lamp", "the fine kettle is late", "  ", "a radio"]


@pytest.fixture(scope="module")
def embedder(model_dir: Path) -> Embedder:
    return Embedder.load(model_dir)


@pytest.fixture
def corpus_path(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@settings(max_examples=60)
@given(
    st.integers(1, 40),
    st.integers(1, 4),
    st.integers(1, 12),
    st.integers(1, 15),
    st.integers(0, 99),
)
def test_the_nearest_are_those_of_a_full_sort(
    rows: int, queries: int, block: int, top: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(-2, 3, (rows, 3)).astype(np.float32)  # many ties
    wanted = rng.integers(-2, 3, (queries, 3)).astype(np.float32)
    blocks = [table[start : start + block] for start in range(0, rows, block)]
    scores, places = nearest(wanted, blocks, top)
    for query, found, where in zip(wanted, scores, places, strict=True):
        products = [float(query @ row) for row in table]
        order = sorted(range(rows), key=lambda i: (-products[i], i))[:top]
        assert where.tolist() == order
        assert found.tolist() == [products[i] for i in order]


def test_hits_have_the_line_of_the_file_and_equal_texts_keep_their_order(
    embedder: Embedder, corpus_path: Path
) -> None:
    corpus = read_corpus(corpus_path)
    assert corpus.lines == [1, 3, 4, 6]
    index = open_index(embedder, corpus)
    (hits,) = search(embedder, corpus, index, ["the fine kettle is late"], 3)
    assert [(hit.rank, hit.line) for hit in hits][:2] == [(1, 1), (2, 4)]
    assert hits[0].score == hits[1].score == pytest.approx(1.0, abs=1e-6)
    assert hits[0].to_json() == {"rank": 1, "score": hits[0].score, "line": 1, "text": LINES[0]}
    many = list(search(embedder, corpus, index, ["a radio", "a broken lamp"], 100))
    assert [found[0].line for found in many] == [6, 3] and all(len(found) == 4 for found in many)
    with pytest.raises(SettingsError, match="top is 0"):
        list(search(embedder, corpus, index, ["x"], 0))


def test_vectors_are_kept_and_made_anew_when_something_changed(
    embedder: Embedder, model_dir: Path, corpus_path: Path
) -> None:
    corpus = read_corpus(corpus_path)
    first = open_index(embedder, corpus)
    assert first.is_new and first.path is not None and first.path.parent.name == INDEX_FOLDER
    assert (first.path.parent / ".gitignore").read_text() == "*\n"
    again = open_index(embedder, corpus)
    assert not again.is_new and again.path == first.path
    np.testing.assert_array_equal(
        np.concatenate(list(again.blocks(3))), np.concatenate(list(first.blocks()))
    )
    short = Embedder.load(model_dir, EmbedOptions(dim=4))
    assert open_index(short, corpus).is_new
    corpus_path.write_text("another text\n" + corpus_path.read_text())
    assert open_index(embedder, read_corpus(corpus_path)).is_new


@pytest.mark.parametrize("damage", [b"", b"\x00" * 40, b"garbage that is no index at all"])
def test_a_damaged_index_is_made_anew(embedder: Embedder, corpus_path: Path, damage: bytes) -> None:
    corpus = read_corpus(corpus_path)
    first = open_index(embedder, corpus)
    assert first.path is not None
    first.path.write_bytes(damage)
    again = open_index(embedder, corpus)
    assert again.is_new and next(again.blocks()).shape == (4, embedder.width)
    first.path.write_bytes(first.path.read_bytes()[:-8])
    assert open_index(embedder, corpus).is_new


def test_a_told_index_is_used_but_never_written_over_something_else(
    embedder: Embedder, corpus_path: Path, model_dir: Path, tmp_path: Path
) -> None:
    corpus, told = read_corpus(corpus_path), tmp_path / "mine.safetensors"
    assert open_index(embedder, corpus, path=told).is_new
    assert not open_index(embedder, corpus, path=told).is_new
    assert not (tmp_path / INDEX_FOLDER).exists()
    short = Embedder.load(model_dir, EmbedOptions(dim=4))
    assert open_index(short, corpus, path=told).is_new
    weights = model_dir / "model.safetensors"
    before = weights.read_bytes()
    with pytest.raises(SettingsError, match="something else"):
        open_index(embedder, corpus, path=weights)
    text = tmp_path / "notes.safetensors"
    text.write_text("my notes")
    with pytest.raises(SettingsError, match="something else"):
        open_index(embedder, corpus, path=text)
    assert weights.read_bytes() == before and text.read_text() == "my notes"
    with pytest.raises(SettingsError, match="must end in"):
        open_index(embedder, corpus, path=tmp_path / "index.bin")


def test_without_a_place_for_them_vectors_stay_in_memory(
    embedder: Embedder, corpus_path: Path
) -> None:
    corpus = read_corpus(corpus_path)
    kept = open_index(embedder, corpus, is_kept=False)
    assert kept.path is None and len(list(corpus_path.parent.iterdir())) == 1
    (corpus_path.parent / INDEX_FOLDER).write_text("a file where the folder should be")
    index = open_index(embedder, corpus)
    assert index.path is None and index.notes
    assert [block.shape for block in index.blocks(3)] == [(3, embedder.width), (1, embedder.width)]
    assert list(Index(None).blocks()) == []


def test_a_search_needs_vectors_of_length_one(model_dir: Path, corpus_path: Path) -> None:
    raw = Embedder.load(model_dir, EmbedOptions(normalize=False))
    with pytest.raises(SettingsError, match="leave normalize on"):
        open_index(raw, read_corpus(corpus_path))


def test_corpora_are_read_with_their_lines(tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text('text,n\n"two\nlines",1\n,2\nlast,3\n')
    corpus = read_corpus(table)
    assert list(zip(corpus.lines, corpus.texts, strict=True)) == [(2, "two\nlines"), (5, "last")]
    with pytest.raises(SettingsError, match="no column"):
        read_corpus(table, "body")
    blank = tmp_path / "blank.txt"
    blank.write_text("\n \n")
    with pytest.raises(DataError, match="every line is blank"):
        read_corpus(blank)
    with pytest.raises(SettingsError, match="has no columns"):
        read_corpus(blank, "text")
    with pytest.raises(DataError, match="no such file"):
        read_corpus(tmp_path / "none.txt")
