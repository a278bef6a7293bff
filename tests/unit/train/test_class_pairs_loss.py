"""All pairs of a step, against the same written out pair by pair; split steps give the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from litebert.data.batch import EncodedExample, collate
from litebert.errors import DataError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.class_pairs_loss import ClassPairsLoss
from litebert.train.micro import to_device

GROUPS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(1, 4), min_size=1, max_size=3)),
    min_size=1,
    max_size=5,
)


def make_model() -> AlbertWithHead:
    torch.manual_seed(0)
    config = AlbertConfig.from_dict(
        {
            "vocab_size": 40, "embedding_size": 8, "hidden_size": 16, "num_hidden_layers": 2,
            "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 40,
            "litebert": {"pooling": "mean"},
        }
    )  # fmt: skip
    return AlbertWithHead(config, "embedding").eval()


MODEL = make_model()


def examples_of(groups: list[tuple[int, list[int]]], labelled: bool = True) -> list[EncodedExample]:
    rng = np.random.default_rng(len(groups))
    found = []
    for index, (label, lengths) in enumerate(groups):
        ids = rng.integers(5, 40, sum(lengths)).astype(np.int32)
        given_label = label if labelled else None
        types = np.zeros_like(ids)
        found.append(EncodedExample(ids, types, given_label, index, tuple(lengths)))
    return found


@settings(max_examples=40, deadline=None)
@given(GROUPS)
def test_every_two_texts_of_a_step_count_once(groups: list[tuple[int, list[int]]]) -> None:
    batch = collate(examples_of(groups))
    device = to_device(batch, torch.device("cpu"))
    loss = ClassPairsLoss()
    with torch.no_grad():
        (term,) = loss(MODEL, device)
        units = functional.normalize(loss.vectors(MODEL, device), dim=-1)
    classes = [label for label, lengths in groups for _ in lengths]
    same, other = [], []
    for a, b in itertools.combinations(range(len(classes)), 2):
        is_same = classes[a] == classes[b]
        error = (float(units[a] @ units[b]) - is_same) ** 2
        (same if is_same else other).append(error)
    wanted = (np.mean(same or [0.0]) + np.mean(other or [0.0])) / 2
    assert loss.counts(batch) == {"class_pairs": len(groups)}
    assert int(term.count) == len(groups)
    assert float(term.total) / len(groups) == pytest.approx(float(wanted), abs=1e-5)


def test_a_split_step_compares_across_its_parts() -> None:
    groups = [(0, [2, 3]), (1, [1]), (0, [2]), (2, [4, 1])]
    examples = examples_of(groups)
    whole = to_device(collate(examples), torch.device("cpu"))
    parts = [to_device(collate(part), torch.device("cpu")) for part in (examples[:2], examples[2:])]
    loss = ClassPairsLoss()
    with torch.no_grad():
        vectors = torch.cat([loss.vectors(MODEL, part) for part in parts])
        split, (once,) = loss.compare(vectors, parts), loss(MODEL, whole)
    torch.testing.assert_close(split.total, once.total)
    assert int(split.count) == int(once.count) == 4


def test_texts_without_classes_are_refused() -> None:
    batch = collate(examples_of([(0, [2])], labelled=False))
    with pytest.raises(DataError, match="name a label"):
        ClassPairsLoss().counts(batch)
    with pytest.raises(DataError, match="name a label"):
        ClassPairsLoss()(MODEL, to_device(batch, torch.device("cpu")))
