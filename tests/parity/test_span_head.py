"""The joint span head against a slow, padded definition, and against the twin in transformers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from litebert.checkpoint.folder import load_model
from litebert.checkpoint.saving import save_model
from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.counting import count_parameters
from litebert.model.packing import Packing
from litebert.model.span_layout import (
    END_COLUMN,
    RANK_COLUMN,
    START_BEAM,
    START_COLUMN,
    answer_groups,
    class_column,
)

pytestmark = pytest.mark.parity

ATOL = 1e-5
"""float32, log-probabilities of order 1 to 10."""
GRADIENT_ATOL = 1e-4
LENGTHS = (14, 9, 4, 20)
QUESTION = (5, 3, 3, 9)
"""Tokens of segment 0 in each sequence; the third has a passage of no token."""
LABELS = {
    "squad": {0: "impossible"},
    "quac": {0: "impossible", 1: "yesno:y", 2: "yesno:n", 3: "yesno:x", 4: "followup:m", 5: "followup:y"},
    "coqa": {0: "kind:span", 1: "kind:yes", 2: "kind:no", 3: "kind:unknown"},
}  # fmt: skip
TARGETS = {
    "squad": [[7, 9, 0], [0, 0, 1], [0, 0, 1], [12, 12, 0]],
    "quac": [[7, 9, 0, 2, 1], [0, 0, 1, 0, 0], [0, 0, 1, -100, 1], [12, 12, 0, 1, -100]],
    "coqa": [[7, 9, 0], [4, 6, 1], [0, 0, 3], [12, 12, -100]],
}


def made(config_maker, name: str, **changes) -> AlbertWithHead:
    torch.manual_seed(0)
    config = config_maker(id2label=LABELS[name], classifier_dropout_prob=0.0, **changes)
    model = AlbertWithHead(config, "span_joint")
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape), alpha=0.2)
    return model.eval()


def batch():
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(1, 61, (4, 20), generator=generator)
    mask = (torch.arange(20) < torch.tensor(LENGTHS)[:, None]).long()
    types = ((torch.arange(20) >= torch.tensor(QUESTION)[:, None]) & mask.bool()).long()
    return ids * mask, mask, types


def slow_definition(model: AlbertWithHead, hidden, types, labels=None):
    """One sequence at a time, whole concatenations, as the official code writes it."""
    head = model.heads["span_joint"]
    rows, loss = [], 0.0
    for n, length in enumerate(LENGTHS):
        h = hidden[n, :length]
        p_mask = (types[n, :length] == 0).float()
        p_mask[0], p_mask[-1] = 0.0, 1.0

        def masked(x, p_mask=p_mask):
            return x * (1 - p_mask) - 1e30 * p_mask

        def end_given(start, h=h, length=length):
            both = torch.cat([h, start[None].expand(length, -1)], dim=1)
            x = torch.tanh(head.end_dense(both))
            x = functional.layer_norm(
                x, x.shape[-1:], head.end_norm.weight, head.end_norm.bias, head.end_norm.eps
            )
            return masked(head.end(x)[:, 0]).log_softmax(0)

        start = masked(head.start(h)[:, 0])
        expected = (start.softmax(0)[:, None] * h).sum(0)
        classes = head.answer(torch.tanh(head.answer_dense(torch.cat([expected, h[0]]))))
        start = start.log_softmax(0)
        if labels is not None:
            first, last, *answer = labels[n]
            part = -start[first] - end_given(h[first])[last]
            column = 0
            for (a, b), label in zip(
                answer_groups(list(model.config.id2label.values())), answer, strict=True
            ):
                column = b
                if label == -100:
                    continue
                if b - a == 1:
                    p = torch.sigmoid(classes[a])
                    part = part - torch.log(p if label else 1 - p)
                else:
                    part = part - classes[a:b].log_softmax(0)[label]
            assert column == len(classes)
            loss = loss + 0.5 * part
        order = sorted(range(length), key=lambda i, s=start: (-s[i].item(), i))[:START_BEAM]
        row = torch.full((length, class_column(len(classes))), -1e30)
        row[:, START_COLUMN], row[:, RANK_COLUMN] = start, -1.0
        for rank, position in enumerate(order):
            if p_mask[position] == 0:
                row[position, RANK_COLUMN] = rank
            row[:, END_COLUMN + rank] = end_given(h[position])
        row[:, class_column() :] = classes
        rows.append(row)
    return rows, loss / len(LENGTHS)


@pytest.mark.parametrize("name", LABELS)
def test_rows_are_those_of_the_slow_definition(tiny_config, name):
    model = made(tiny_config, name)
    ids, mask, types = batch()
    with torch.no_grad():
        out = model(ids, mask, types)
        slow, _ = slow_definition(model, out.last_hidden_state, types)
        real = mask.bool()
        packed = model.forward_packed(ids[real], Packing.from_lengths(LENGTHS), types[real])
    assert out.logits.shape == (4, 20, class_column(len(LABELS[name])))
    for n, length in enumerate(LENGTHS):
        found = out.logits[n, :length]
        wanted = slow[n].clone()
        # The ends of starts that cannot be are no one's concern.
        wide = [
            END_COLUMN + k
            for k in range(START_BEAM)
            if not bool((wanted[:, RANK_COLUMN] == k).any())
        ]
        wanted[:, wide] = found[:, wide]
        usable = wanted > -1e29
        assert torch.equal(usable, found > -1e29)
        assert (found - wanted)[usable].abs().max() <= ATOL
    assert (packed.logits - out.logits[real]).abs()[out.logits[real] > -1e29].max() <= ATOL


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", LABELS)
def test_loss_and_gradients_are_those_of_the_slow_definition(
    tiny_config, assert_gradients_equal, name, training
):
    model, twin = made(tiny_config, name), made(tiny_config, name)
    model.train(training)
    ids, mask, types = batch()
    labels = torch.tensor(TARGETS[name])
    a = model(ids, mask, types, labels=labels)
    hidden = twin.model(ids, mask, types).last_hidden_state
    _, loss = slow_definition(twin, hidden, types, TARGETS[name])
    assert (a.loss - loss).abs() <= ATOL
    assert a.logits.shape[:2] == (4, 20) and bool(a.logits.shape[2]) is not training
    a.loss.backward()
    loss.backward()
    wanted = {
        n: torch.zeros_like(w) if w.grad is None else w.grad for n, w in twin.named_parameters()
    }
    assert_gradients_equal(model, wanted, GRADIENT_ATOL)
    real = mask.bool()
    b = model.forward_packed(ids[real], Packing.from_lengths(LENGTHS), types[real], labels=labels)
    assert (b.loss - loss).abs() <= ATOL
    # Micro-batches add up: each term is a sum over sequences.
    one = model(ids[:1], mask[:1], types[:1], labels=labels[:1]).terms[0]
    rest = model(ids[1:], mask[1:], types[1:], labels=labels[1:]).terms[0]
    assert (one.total + rest.total - a.terms[0].total).abs() <= 4 * ATOL
    assert int(one.count + rest.count) == int(a.terms[0].count) == 4


def test_one_step_down_the_gradient_learns(tiny_config):
    model = made(tiny_config, "squad").train()
    ids, mask, types = batch()
    labels = torch.tensor(TARGETS["squad"])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(60):
        loss = model(ids, mask, types, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    with torch.no_grad():
        rows = model.eval()(ids, mask, types).logits.numpy()
    for n, (first, last, impossible) in enumerate(TARGETS["squad"]):
        assert rows[n, :, START_COLUMN].argmax() == first
        assert rows[n, first, RANK_COLUMN] == 0
        assert rows[n, : LENGTHS[n], END_COLUMN].argmax() == last
        assert (rows[n, 0, class_column()] > 0) == bool(impossible)


def test_beams_are_those_of_the_twin_in_transformers(tiny_config):
    transformers = pytest.importorskip("transformers")
    from transformers.models.xlnet import modeling_xlnet as theirs

    model = made(tiny_config, "squad")
    head, width = model.heads["span_joint"], model.config.hidden_size
    config = transformers.XLNetConfig(vocab_size=9, d_model=width, n_layer=1, n_head=1, d_inner=4)
    config.layer_norm_eps = model.config.layer_norm_eps
    start, end, answer = (
        theirs.XLNetPoolerStartLogits(config), theirs.XLNetPoolerEndLogits(config),
        theirs.XLNetPoolerAnswerClass(config),
    )  # fmt: skip
    start.dense.load_state_dict(head.start.state_dict())
    end.dense_0.load_state_dict(head.end_dense.state_dict())
    end.LayerNorm.load_state_dict(head.end_norm.state_dict())
    end.dense_1.load_state_dict(head.end.state_dict())
    answer.dense_0.load_state_dict(head.answer_dense.state_dict())
    answer.dense_1.load_state_dict(head.answer.state_dict())
    ids, _, _ = batch()
    ids = ids[:2].clamp(min=1)
    types = (torch.arange(20) >= 6).long().expand(2, -1)
    with torch.no_grad():
        out = model(ids, None, types)
        h = out.last_hidden_state
        p_mask = 1.0 - types.float()
        p_mask[:, 0], p_mask[:, -1] = 0.0, 1.0
        logits = start(h, p_mask=p_mask)
        best = logits.topk(START_BEAM, dim=1).indices
        states = torch.gather(h, 1, best[..., None].expand(-1, -1, width))
        spread = states[:, None].expand(-1, 20, -1, -1)
        ends = end(h[:, :, None].expand_as(spread), start_states=spread, p_mask=p_mask[..., None])
        expected = torch.einsum("blh,bl->bh", h, logits.softmax(1))
        classes = answer(h, start_states=expected, cls_index=torch.zeros(2, dtype=torch.int64))
    rows = out.logits
    possible = p_mask == 0
    assert (rows[..., START_COLUMN] - logits.log_softmax(1))[possible].abs().max() <= ATOL
    for n in range(2):
        assert rows[n, :, RANK_COLUMN].gather(0, best[n]).tolist() == list(range(START_BEAM))
    found = rows[..., END_COLUMN : END_COLUMN + START_BEAM]
    assert (found - ends.log_softmax(1))[possible].abs().max() <= ATOL
    assert (rows[:, 0, class_column()] - classes).abs().max() <= ATOL


def test_padding_left_right_and_batch_company_change_nothing(tiny_config):
    model = made(tiny_config, "squad")
    ids, mask, types = batch()
    with torch.no_grad():
        alone = model(ids[1:2, :9], None, types[1:2, :9]).logits[0]
        padded = model(ids, mask, types).logits[1, :9]
        left = model(
            ids.roll(11, 1)[1:2], mask.roll(11, 1)[1:2], types.roll(11, 1)[1:2],
            torch.arange(20).roll(11)[None],
        ).logits[0, 11:]  # fmt: skip
    for other in (padded, left):
        usable = alone > -1e29
        assert torch.equal(usable, other > -1e29)
        assert (alone - other)[usable].abs().max() <= ATOL


def test_equal_starts_are_ranked_by_place(tiny_config):
    model = made(tiny_config, "squad")
    with torch.no_grad():
        model.heads["span_joint"].start.weight.zero_()
        rows = model(*(x[:1, :14] for x in batch())).logits[0].numpy()
    assert [int(x) for x in rows[:, RANK_COLUMN]] == [0, -1, -1, -1, -1, 1, 2, 3, 4, *[-1] * 5]
    assert np.allclose(rows[rows[:, 0] > -1e29, START_COLUMN], -np.log(9))


def test_positions_where_no_answer_can_be_do_not_count(tiny_config):
    model = made(tiny_config, "squad")
    ids, mask, types = batch()
    wanted = model(ids[:1], mask[:1], types[:1], labels=torch.tensor([[7, -100, 1]])).loss
    for end in (2, 13, 99, -1):  # in the question, the last [SEP], beyond, none
        found = model(ids[:1], mask[:1], types[:1], labels=torch.tensor([[7, end, 1]])).loss
        assert torch.equal(found, wanted)


def test_what_does_not_fit_is_refused(tiny_config):
    model = made(tiny_config, "squad")
    coqa = made(tiny_config, "coqa")
    ids, mask, types = batch()
    with pytest.raises(SettingsError, match="type_vocab_size"):
        AlbertWithHead(tiny_config(id2label=LABELS["squad"], type_vocab_size=1), "span_joint")
    with pytest.raises(DataError, match="needs token_type_ids"):
        model.forward_packed(ids[0], Packing.from_lengths([20]))
    with pytest.raises(DataError, match=r"must be \[4, 3\]"):
        model(ids, mask, types, labels=torch.zeros(4, 2, dtype=torch.int64))
    with pytest.raises(DataError, match=r"type torch\.float32"):
        model(ids, mask, types, labels=torch.zeros(4, 3))
    with pytest.raises(DataError, match=r"allowed are 0, 1, or -100"):
        model(ids, mask, types, labels=torch.tensor([[7, 9, 2]] * 4))
    with pytest.raises(DataError, match="allowed are 0 to 3"):
        coqa(ids, mask, types, labels=torch.tensor([[7, 9, 4]] * 4))


def test_a_folder_keeps_the_head_and_says_that_transformers_cannot_read_it(tiny_config, tmp_path):
    model = made(tiny_config, "quac")
    assert model.config.model_type == "litebert"
    parameters = sum(weight.numel() for weight in model.parameters())
    assert count_parameters(model.config, head="span_joint").total == parameters
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, AlbertWithHead) and again.head == "span_joint"
    ids, mask, types = batch()
    with torch.no_grad():
        assert torch.equal(again.eval()(ids, mask, types).logits, model(ids, mask, types).logits)
    encoder = AlbertModel(tiny_config())
    save_model(encoder, tmp_path / "encoder")
    fresh = load_model(
        tmp_path / "encoder",
        "span_joint",
        allow_new_head=True,
        changes={"id2label": {0: "impossible"}},
    )
    assert isinstance(fresh, AlbertWithHead)


def test_groups_are_runs_of_one_word():
    assert answer_groups(["impossible"]) == ((0, 1),)
    assert answer_groups(["a:x", "a:y", "b:x", "no", "no", "b:y"]) == (
        (0, 2), (2, 3), (3, 4), (4, 5), (5, 6),
    )  # fmt: skip
    assert answer_groups([]) == ()
