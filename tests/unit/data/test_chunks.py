"""Chunks: tile every document, keep sentences whole, are found again after saving."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.chunks import ChunkIndex
from litebert.errors import DataError, SettingsError

sys.path.insert(0, str(Path(__file__).parent))
from shard_fixture import make_shards


def fake_shards(documents: list[list[int]], seed: int = 0, per_shard: int = 3) -> Any:
    """Shards in memory from sentence lengths; ids count up, two words in three tokens."""
    rng = np.random.default_rng(seed)
    shards = []
    for first in range(0, len(documents), per_shard):
        part = documents[first : first + per_shard]
        lengths = [length for document in part for length in document]
        total = sum(lengths)
        flags = rng.random(total) < 0.66
        shards.append(
            SimpleNamespace(
                ids=np.arange(total, dtype=np.uint16),
                sentences=np.cumsum([0, *lengths]).astype(np.uint32),
                documents=np.cumsum([0, *(len(document) for document in part)]).astype(np.uint32),
                flags=flags,
                word_starts=lambda a, b, flags=flags: flags[a:b],
            )
        )
    return SimpleNamespace(shards=tuple(shards), fingerprint="abc")


DOCUMENTS = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=8), min_size=1, max_size=7)


@given(DOCUMENTS, st.integers(2, 50), st.floats(0.0, 1.0), st.integers(0, 5))
def test_chunks_tile_documents_at_sentence_ends(documents, max_tokens, short_fraction, seed):
    shards = fake_shards(documents)
    index = ChunkIndex.build(
        shards, max_tokens=max_tokens, short_fraction=short_fraction, seed=seed
    )
    chunks = [index.chunk(i) for i in range(len(index))]
    assert index.lengths.tolist() == [len(chunk) for chunk in chunks]
    assert sum(map(len, chunks)) == sum(map(sum, documents))
    assert min(map(len, chunks)) >= 1 and max(map(len, chunks)) <= max_tokens
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [index.document(i) for i in range(len(index))] == [c.document for c in chunks]
    ends: dict[int, list[int]] = {}
    position: dict[int, int] = {}
    for chunk in chunks:
        assert chunk.word_starts[0] and chunk.ids.dtype == np.int32
        assert (np.diff(chunk.ids) == 1).all()
        start = position.get(chunk.document, 0)
        ends.setdefault(chunk.document, []).extend((start + chunk.sentence_ends).tolist())
        position[chunk.document] = start + len(chunk)
    for number, document in enumerate(documents):
        assert position[number] == sum(document)
        assert set(np.cumsum(document).tolist()) <= set(ends[number])
        # Ends that are no sentence's are cuts in a sentence longer than the target.
        bounds = np.cumsum([0, *document])
        for cut in set(ends[number]) - set(bounds.tolist()):
            assert document[int(np.searchsorted(bounds, cut)) - 1] > 2


def test_without_short_targets_chunks_are_as_full_as_sentences_allow():
    index = ChunkIndex.build(fake_shards([[4, 4, 4, 5, 9]]), max_tokens=12, short_fraction=0.0)
    assert index.lengths.tolist() == [12, 5, 9]
    assert index.chunk(0).sentence_ends.tolist() == [4, 8, 12]


def test_long_sentences_are_cut_where_a_word_begins():
    shards = fake_shards([[3, 100, 2]])
    shards.shards[0].flags[:] = False
    shards.shards[0].flags[[0, 3, 11, 12, 40]] = True
    index = ChunkIndex.build(shards, max_tokens=10, short_fraction=0.0)
    chunks = [index.chunk(i) for i in range(len(index))]
    starts = [int(chunk.ids[0]) for chunk in chunks]
    assert starts[:3] == [0, 3, 12]  # not between 3 and 13 but at the last word start
    assert starts[3] == 22  # no word begins: cut anyway
    assert all(len(chunk.sentence_ends) == 1 for chunk in chunks[:-1])
    assert chunks[-1].ids[-1] == 104


def test_about_a_tenth_is_shorter():
    shards = fake_shards([[1] * 4000 for _ in range(10)])
    index = ChunkIndex.build(shards, max_tokens=50)
    lengths = index.lengths
    short = (lengths < 50).mean()
    assert 0.06 < short < 0.14
    assert lengths.min() < 8
    other = ChunkIndex.build(shards, max_tokens=50, seed=1)
    assert len(other) != len(index) or (other.lengths != lengths).any()
    again = ChunkIndex.build(shards, max_tokens=50)
    assert np.array_equal(again.lengths, lengths)
    assert again.fingerprint == index.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    "wrong",
    [{"max_tokens": 1}, {"max_tokens": 9, "short_fraction": 1.5}, {"max_tokens": 9, "seed": -1}],
)
def test_numbers_out_of_range(wrong):
    with pytest.raises(SettingsError, match="allowed"):
        ChunkIndex.build(fake_shards([[3]]), **wrong)


def test_save_and_load(tmp_path):
    shards = make_shards(tmp_path)
    index = ChunkIndex.build(shards, max_tokens=30, seed=4)
    index.save(tmp_path / "chunks")
    loaded = ChunkIndex.load(tmp_path / "chunks", shards)
    copies = [pickle.loads(pickle.dumps(each)) for each in (loaded, index)]  # noqa: S301
    for other in (loaded, *copies):
        assert len(other) == len(index)
        assert other.fingerprint == index.fingerprint
        for i in (0, len(index) // 2, len(index) - 1):
            assert np.array_equal(other.chunk(i).ids, index.chunk(i).ids)
            assert np.array_equal(other.chunk(i).word_starts, index.chunk(i).word_starts)
            assert other.chunk(i).document == index.chunk(i).document
    assert len(pickle.dumps(loaded)) < 20_000
    with pytest.raises(IndexError):
        loaded.chunk(len(loaded))
    with pytest.raises(IndexError):
        loaded.document(-1)


def test_files_that_do_not_fit(tmp_path):
    path = tmp_path / "chunks"
    shards = fake_shards([[4, 5], [6]])
    with pytest.raises(DataError, match="cannot be read"):
        ChunkIndex.load(path, shards)
    ChunkIndex.build(shards, max_tokens=8).save(path)
    other = fake_shards([[4, 5], [6]])
    other.fingerprint = "def"
    with pytest.raises(DataError, match="other shards"):
        ChunkIndex.load(path, other)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with pytest.raises(DataError, match="bytes, expected"):
        ChunkIndex.load(path, shards)
    for wrong in (b"", b"PK\x03\x04", b"[]\n", b'{"format": "litebert chunks 9"}\n', b"\xff\n"):
        path.write_bytes(wrong)
        with pytest.raises(DataError, match="no chunk index of the format"):
            ChunkIndex.load(path, shards)
    header = json.loads(content.partition(b"\n")[0])
    path.write_bytes(json.dumps(header | {"counts": [-1]}).encode() + b"\n")
    with pytest.raises(DataError, match="no chunk index"):
        ChunkIndex.load(path, shards)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        ChunkIndex.build(fake_shards([[4]]), max_tokens=8).save(tmp_path / "file" / "chunks")
