"""The pretraining loss: the model's own losses, from one pass, adding up over micro-batches."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch.nn import functional

from litebert.data.batch import split_batch
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.examples import collate_examples
from litebert.objectives.loss import PretrainingLoss
from litebert.objectives.model import make_pretraining_model, model_to_save

RTOL = 1e-5
"""float32 sums over some hundred tokens, in another order."""


@pytest.fixture
def batch(corpus):
    maker = corpus.maker()
    return collate_examples([maker.make(0, index) for index in (3, 50, 51, 90, 120)])


@pytest.fixture
def model(small_config):
    torch.manual_seed(0)
    return make_pretraining_model(small_config, ObjectiveSettings()).eval()


def test_terms_are_the_losses_of_the_model(batch, model, tensors):
    loss = PretrainingLoss(ObjectiveSettings())
    moved = tensors(batch)
    terms = {term.name: term for term in loss(model, moved)}
    assert loss.weights == {"mlm": 1.0, "sop": 1.0}
    assert {name: int(term.count) for name, term in terms.items()} == loss.counts(batch)
    whole = model.forward_packed(
        moved.input_ids,
        moved.packing,
        moved.token_type_ids,
        labels={"mlm": moved.labels, "sentence_order": moved.order_labels},
    )
    for term, wanted in zip((terms["mlm"], terms["sop"]), whole.terms, strict=True):
        assert torch.allclose(term.total, wanted.total, rtol=RTOL)
        assert int(term.count) == int(wanted.count)
    ours = torch.autograd.grad(sum(t.mean for t in terms.values()), list(model.parameters()))
    theirs = torch.autograd.grad(whole.loss, list(model.parameters()))
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)


def test_micro_batches_add_up(batch, model, tensors):
    loss = PretrainingLoss(ObjectiveSettings())
    whole = {term.name: term.total.detach() for term in loss(model, tensors(batch))}
    parts = [loss(model, tensors(micro)) for micro in split_batch(batch, 130)]
    assert len(parts) > 1
    for place, (_, total) in enumerate(whole.items()):
        assert torch.allclose(sum(part[place].total for part in parts), total, rtol=RTOL)


def test_the_encoder_runs_once(batch, model, tensors, monkeypatch):
    calls = []
    run = model.model.forward_packed
    monkeypatch.setattr(model.model, "forward_packed", lambda *args: calls.append(1) or run(*args))
    PretrainingLoss(ObjectiveSettings())(model, tensors(batch))
    assert len(calls) == 1


def test_a_batch_without_targets(corpus, model, tensors):
    lonely = [i for i in range(60) if len(corpus.index.chunk(i).sentence_ends) == 1][:2]
    maker = corpus.maker(mlm={"weight": 0})
    batch = collate_examples([maker.make(0, index) for index in lonely])
    loss = PretrainingLoss(maker.settings)
    assert loss.counts(batch) == {"sop": 0}
    (term,) = loss(model, tensors(batch))
    assert float(term.total.detach()) == int(term.count) == 0
    loss = PretrainingLoss(ObjectiveSettings())
    moved = tensors(batch)
    terms = loss(model, moved)
    moved.labels = None
    assert [float(t.total.detach()) for t in (*terms, *loss(model, moved))] == [0.0] * 4
    sum(term.mean for term in terms).backward()


@pytest.mark.parametrize(
    ("head", "values", "match"),
    [
        ("mlm", {}, "sop needs a model with the head"),
        ("sentence_order", {}, "mlm needs a model with the head"),
        ("pretraining", {"rtd": {}}, "rtd needs a model with a generator"),
    ],
)
def test_a_model_without_the_head(corpus, batch, small_config, tensors, head, values, match):
    model = AlbertWithHead(small_config, head)
    loss = PretrainingLoss(corpus.maker(**values).settings)
    with pytest.raises(SettingsError, match=match):
        loss(model, tensors(batch))


@pytest.mark.parametrize(
    ("values", "head"),
    [
        ({}, "pretraining"),
        ({"order": "none"}, "mlm"),
        ({"mlm": {"weight": 0}, "order": "nsp"}, "sentence_order"),
    ],
)
def test_each_combination_trains_every_weight(corpus, small_config, tensors, values, head):
    maker = corpus.maker(**values)
    model = make_pretraining_model(small_config, maker.settings)
    assert model.head == head and model_to_save(model) is model
    loss = PretrainingLoss(maker.settings)
    batch = collate_examples([maker.make(0, index) for index in range(40, 60)])
    terms = loss(model, tensors(batch))
    assert [term.name for term in terms] == list(loss.weights) == list(loss.counts(batch))
    sum(term.mean for term in terms).backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None]
    assert not idle


def test_measure(corpus, batch, model, tensors):
    maker = corpus.maker()
    loss = PretrainingLoss(ObjectiveSettings(), maker=maker)
    moved = tensors(batch)
    sums = loss.measure(model, moved)
    places = (moved.labels != -100).nonzero()[:, 0]
    targets = moved.labels[places]
    with torch.no_grad():
        whole = model.forward_packed(moved.input_ids, moved.packing, moved.token_type_ids)
    logits = whole.logits["mlm"][places]
    each = functional.cross_entropy(logits, targets, reduction="none")
    right = logits.argmax(1) == targets
    assert sums["mlm_loss_sum"] == pytest.approx(float(each.detach().sum()), rel=RTOL)
    assert sums["mlm_correct"] == int(right.sum())
    assert sums["mlm_count"] == len(targets)
    assert sums["word_loss_sum"] == pytest.approx(sums["mlm_loss_sum"])
    words = correct = 0
    for place, sample in enumerate(batch.example_index):
        start, end = batch.cu_seqlens[place : place + 2]
        begins = [*maker.word_begins(0, int(sample)).tolist(), end - start]
        for a, b in pairwise(begins):
            inside = (places >= start + a) & (places < start + b)
            if inside.any():
                assert int(inside.sum()) == b - a  # whole words
                words += 1
                correct += bool(right[inside].all())
    assert (sums["word_count"], sums["word_correct"]) == (words, correct)
    order = whole.logits["sentence_order"].argmax(1) == moved.order_labels
    assert sums["sop_correct"] == int(order.sum())
    assert sums["sop_count"] == int((moved.order_labels != -100).sum())
    assert math.exp(sums["word_loss_sum"] / sums["word_count"]) > 1
    assert "word_count" not in PretrainingLoss(ObjectiveSettings()).measure(model, moved)


def test_it_learns(corpus, small_config, tensors):
    """The losses of one batch, seen again and again, fall."""
    torch.manual_seed(0)
    maker = corpus.maker()
    model = make_pretraining_model(small_config, maker.settings)
    loss = PretrainingLoss(maker.settings)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    moved = tensors(collate_examples([maker.make(0, index) for index in range(100, 106)]))
    seen = []
    for _ in range(25):
        means = torch.stack([term.mean for term in loss(model, moved)])
        optimizer.zero_grad()
        means.sum().backward()
        optimizer.step()
        seen.append(means.detach())
    assert (seen[-1] < 0.7 * seen[0]).all()
