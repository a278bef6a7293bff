"""Pairs: what is swapped, what is random, what a chunk of one sentence becomes."""

from __future__ import annotations

import numpy as np
import pytest

from litebert.errors import SettingsError
from litebert.objectives.base import IGNORED
from litebert.objectives.compose import ObjectiveSettings
from litebert.settings import build_settings

SIGMAS = 5.0


def clean(maker, index, example):
    """The example with what is hidden put back, and its segments."""
    ids = np.where(example.labels == IGNORED, example.ids, example.labels)
    assert ids[0] == maker.tokens.cls and ids[-1] == maker.tokens.sep
    first = ids[1:-1][example.type_ids[1:-1] == 0]
    second = ids[1:-1][example.type_ids[1:-1] == 1]
    if len(second):
        assert first[-1] == maker.tokens.sep
        first = first[:-1]
    return first.tolist(), second.tolist()


@pytest.mark.parametrize("kind", ["sop", "none"])
def test_unmasking_and_unswapping_restores_the_chunk(corpus, kind):
    maker = corpus.maker(order=kind)
    labels = []
    for index in range(len(corpus.index)):
        chunk, example = corpus.index.chunk(index), maker.make(0, index)
        first, second = clean(maker, index, example)
        assert len(example) <= corpus.index.settings["max_tokens"] + 3
        if len(chunk.sentence_ends) == 1:
            assert not second and example.order_label == -100
            assert first == chunk.ids.tolist()
            continue
        labels.append(example.order_label)
        if example.order_label == 1:
            first, second = second, first
        assert first + second == chunk.ids.tolist()
        assert len(first) in chunk.sentence_ends[:-1]
    if kind == "none":
        assert set(labels) == {-100}
    else:
        assert abs(np.mean(labels) - 0.5) < SIGMAS * 0.5 / len(labels) ** 0.5


def test_every_inner_sentence_end_is_a_place_to_cut(corpus):
    maker = corpus.maker(order="none")
    index = int(np.argmax([len(corpus.index.chunk(i).sentence_ends) for i in range(20)]))
    chunk = corpus.index.chunk(index)
    cuts = {len(maker.arrangement(epoch, index).first) for epoch in range(100)}
    assert cuts == set(chunk.sentence_ends[:-1].tolist())


def test_one_segment_for_none(corpus):
    maker = corpus.maker(order={"kind": "none", "segments": 1})
    for index in range(10):
        example = maker.make(0, index)
        assert clean(maker, index, example) == (corpus.index.chunk(index).ids.tolist(), [])


def is_beginning_of_another_document(corpus, segment, document):
    return any(
        corpus.index.chunk(i).ids[: len(segment)].tolist() == segment
        and corpus.index.document(i) != document
        for i in range(len(corpus.index))
    )


def test_next_sentence(corpus):
    maker = corpus.maker(order="nsp")
    labels = []
    for index in range(0, len(corpus.index), 2):
        chunk, example = corpus.index.chunk(index), maker.make(3, index)
        first, second = clean(maker, index, example)
        assert len(example) <= corpus.index.settings["max_tokens"] + 3
        assert first == chunk.ids[: len(first)].tolist()
        assert (example.order_label == -100) == (len(chunk.sentence_ends) == 1) == (not second)
        if not second:
            continue
        labels.append(example.order_label)
        if example.order_label == 0:
            assert first + second == chunk.ids.tolist()
        else:
            assert is_beginning_of_another_document(corpus, second, chunk.document)
    assert set(labels) == {0, 1}
    assert abs(np.mean(labels) - 0.5) < SIGMAS * 0.5 / len(labels) ** 0.5


@pytest.mark.parametrize("kind", ["sop", "nsp"])
def test_one_sentence_under_the_compatibility_switch(corpus, kind):
    maker = corpus.maker(order={"kind": kind, "google_compatible": True})
    seen = 0
    for index in range(len(corpus.index)):
        chunk, example = corpus.index.chunk(index), maker.make(0, index)
        assert example.order_label in (0, 1)
        if len(chunk.sentence_ends) == 1:
            seen += 1
            first, second = clean(maker, index, example)
            assert example.order_label == 1 and first == chunk.ids.tolist()
            assert is_beginning_of_another_document(corpus, second, chunk.document)
    assert seen > 10


@pytest.mark.parametrize("kind", ["sop", "nsp"])
def test_a_single_document_has_no_other(make_corpus, kind):
    alone = make_corpus(
        [["One blue kettle sings.", "It is late and raining in the harbour."]], 60, 8
    )
    maker = alone.maker(order={"kind": kind, "google_compatible": True, "negative_prob": 1.0})
    for index in range(len(alone.index)):
        several = len(alone.index.chunk(index).sentence_ends) > 1
        wanted = {"sop": 1, "nsp": 0}[kind] if several else -100
        assert maker.make(0, index).order_label == wanted


def test_a_full_chunk_makes_room_for_another_document(make_corpus):
    long = " ".join(["a very long line about nothing"] * 30)
    corpus = make_corpus([[long], [long]], 60, 40, 0.0)
    maker = corpus.maker(order={"kind": "sop", "google_compatible": True})
    lengths = {tuple(map(len, clean(maker, i, maker.make(0, i)))) for i in range(len(corpus.index))}
    assert (20, 20) in lengths


def test_order_is_also_given_by_its_kind_alone():
    assert build_settings(ObjectiveSettings, {"order": "nsp"}).order.kind == "nsp"
    with pytest.raises(SettingsError, match="kind"):
        build_settings(ObjectiveSettings, {"order": "random"})
