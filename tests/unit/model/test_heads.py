"""Heads: positions, shapes, labels that do not fit, losses that add up."""

from __future__ import annotations

import pytest
import torch

from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.head_kinds import HEADS
from litebert.model.losses import LossTerm, classification_loss, cross_entropy
from litebert.model.packing import Packing

ATOL = 1e-6
"""float32, logits of order 1."""
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.fixture
def ids():
    return torch.randint(1, 50, (2, 4))


@pytest.mark.parametrize("head", HEADS)
def test_pooler_only_where_the_published_head_has_one(make_config, head):
    model = AlbertWithHead(make_config(), head)
    assert (model.model.pooler is not None) == HEADS[head].has_pooler
    assert model.config.litebert.head == head
    assert set(model.heads) == set(HEADS[head].parts)


def test_mlm_logits_only_at_masked_positions(make_config, ids):
    model = AlbertWithHead(make_config(), "mlm").eval()
    everywhere = model(ids, MASK)
    assert everywhere.logits.shape == (2, 4, 50)
    assert not everywhere.logits[MASK == 0].any()
    chosen = torch.tensor([1, 3, 5])  # row * S + column
    labels = torch.full((2, 4), -100)
    labels.view(-1)[chosen] = torch.tensor([7, 8, 9])
    some = model(ids, MASK, labels=labels, masked_positions=chosen)
    assert some.logits.shape == (3, 50)
    assert torch.allclose(some.logits, everywhere.logits.flatten(0, 1)[chosen], atol=ATOL)
    flat = model(ids, MASK, labels=torch.tensor([7, 8, 9]), masked_positions=chosen)
    assert torch.allclose(flat.loss, some.loss)
    assert torch.allclose(some.loss, model(ids, MASK, labels=labels).loss, atol=ATOL)
    unmasked = model(ids, masked_positions=chosen)
    assert torch.allclose(unmasked.logits, model(ids).logits.flatten(0, 1)[chosen], atol=ATOL)
    with pytest.raises(DataError, match="hold a padding token"):
        model(ids, MASK, masked_positions=torch.tensor([6]))
    with pytest.raises(DataError, match="masked_positions go from 8 to 8"):
        model(ids, MASK, masked_positions=torch.tensor([8]))


def test_mlm_decoder_is_the_token_table(make_config):
    model = AlbertWithHead(make_config(), "mlm")
    assert not any("decoder" in name for name in model.state_dict())
    model(torch.tensor([[3, 4]]), labels=torch.tensor([[5, -100]])).loss.backward()
    assert model.model.embeddings.token.weight.grad[40].any()  # by way of the softmax


def test_pretraining_is_the_sum_of_its_parts(make_config, ids):
    model = AlbertWithHead(make_config(), "pretraining").eval()
    mlm, order = torch.randint(0, 50, (2, 4)), torch.tensor([0, 1])
    both = model(ids, MASK, labels={"mlm": mlm, "sentence_order": order})
    assert set(both.logits) == {"mlm", "sentence_order"}
    parts = [
        model(ids, MASK, labels={name: value}).loss
        for name, value in (("mlm", mlm), ("sentence_order", order))
    ]
    assert torch.allclose(both.loss, parts[0] + parts[1])
    assert [term.name for term in both.terms] == ["mlm", "sentence_order"]
    assert [int(term.count) for term in both.terms] == [6, 2]  # labels on padding do not count
    with pytest.raises(DataError, match="are a dict"):
        model(ids, MASK, labels=mlm)
    with pytest.raises(DataError, match=r"\['order'\]; this model has"):
        model(ids, MASK, labels={"order": order})
    with pytest.raises(DataError, match="labels for nothing"):
        model(ids, MASK, labels={})


def test_micro_batches_add_up_exactly(make_config, ids):
    model = AlbertWithHead(make_config(), "token").eval()
    labels = torch.tensor([[0, 1, 1, -100], [1, -100, 0, 0]])
    whole = model(ids, MASK, labels=labels)
    parts = [model(ids[i : i + 1], MASK[i : i + 1], labels=labels[i : i + 1]) for i in (0, 1)]
    total = sum(part.terms[0].total for part in parts)
    count = sum(part.terms[0].count for part in parts)
    assert torch.allclose(whole.loss, total / count)


def test_choice_groups_sequences(make_config):
    model = AlbertWithHead(make_config(), "choice").eval()
    ids, mask = torch.randint(1, 50, (2, 3, 4)), torch.ones(2, 3, 4)
    mask[1, 2, 2:] = 0
    types, positions = torch.ones(2, 3, 4, dtype=torch.long), torch.arange(4).expand(2, 3, 4)
    out = model(ids, mask, types, positions, labels=torch.tensor([2, 0]))
    assert out.logits.shape == (2, 3)
    real = mask.bool()
    packing = Packing.from_lengths(mask.flatten(0, 1).sum(1).int().tolist())
    packed = model.forward_packed(ids[real], packing, types[real], num_choices=3)
    assert torch.allclose(packed.logits, out.logits, atol=ATOL)
    with pytest.raises(DataError, match=r"needs input_ids \[B, C, S\]"):
        model(ids[0])
    for count in (None, 4):
        with pytest.raises(DataError, match="num_choices that divides the 6 sequences"):
            model.forward_packed(ids[real], packing, num_choices=count)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_embeddings(make_config, ids, pooling):
    model = AlbertWithHead(make_config(litebert={"pooling": pooling}), "embedding").eval()
    out = model(ids, MASK)
    if pooling == "cls":
        assert torch.equal(out.logits, out.pooler_output)
    else:
        expected = out.last_hidden_state.sum(1) / MASK.sum(1, keepdim=True)
        assert torch.allclose(out.logits, expected, atol=ATOL)
    unit = model(ids, MASK, normalize=True).logits
    assert torch.allclose(unit.norm(dim=1), torch.ones(2))
    assert torch.allclose(unit, out.logits / out.logits.norm(dim=1, keepdim=True), atol=ATOL)
    with pytest.raises(DataError, match="no loss of its own"):
        model(ids, MASK, labels=torch.tensor([0, 1]))


def test_span_never_picks_padding(make_config, ids):
    model = AlbertWithHead(make_config(), "span").eval()
    out = model(ids, MASK, labels=torch.tensor([[0, 3], [1, 2]]))  # 2 is padding: not counted
    assert out.logits.shape == (2, 4, 2)
    assert (out.logits.argmax(1)[1] < 2).all()
    assert out.logits.isfinite().all()
    beyond = model(ids, MASK, labels=torch.tensor([[9, 9], [9, 9]]))
    assert beyond.loss == 0.0
    with pytest.raises(DataError, match=r"span labels must be \[2, 2\]"):
        model(ids, MASK, labels=torch.tensor([0, 1]))


def test_wrong_labels_are_named(make_config, ids):
    model = AlbertWithHead(make_config()).eval()
    with pytest.raises(DataError, match="labels go from 0 to 2, allowed are 0 to 1"):
        model(ids, MASK, labels=torch.tensor([0, 2]))
    with pytest.raises(DataError, match="3 labels for 2 predictions"):
        model(ids, MASK, labels=torch.tensor([0, 1, 1]))
    with pytest.raises(DataError, match="regression needs one number for each output"):
        classification_loss("x", torch.randn(2, 3), torch.randn(2), "regression")


def test_wrong_heads_are_named(make_config):
    with pytest.raises(SettingsError, match="unknown head 'ner'; known: mlm"):
        AlbertWithHead(make_config(), "ner")
    with pytest.raises(SettingsError, match="configuration has 3 labels"):
        AlbertWithHead(make_config(id2label={0: "a", 1: "b", 2: "c"}), "span")


def test_no_target_is_zero_loss_not_nan():
    term = cross_entropy("x", torch.randn(2, 3), torch.tensor([-100, -100]))
    assert isinstance(term, LossTerm)
    assert float(term.mean) == 0.0


def test_classifier_dropout(make_config, ids):
    model = AlbertWithHead(make_config(classifier_dropout_prob=0.5))
    assert not torch.equal(model(ids).logits, model(ids).logits)
