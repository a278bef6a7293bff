"""Replaced tokens: what is shared, what is drawn, what is lost, what is kept."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional

from litebert.checkpoint.folder import load_model
from litebert.checkpoint.saving import save_model
from litebert.data.batch import split_batch
from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.objectives.examples import collate_examples
from litebert.objectives.loss import PretrainingLoss
from litebert.objectives.model import make_pretraining_model, model_to_save
from litebert.objectives.replaced import run_generator

RTOL = 1e-5
SHARES = ("all", "embeddings", "none")


@pytest.fixture
def make(corpus, small_config):
    def build(order="sop", **rtd):
        torch.manual_seed(0)
        maker = corpus.maker(order=order, rtd=rtd)
        model = make_pretraining_model(small_config, maker.settings).eval()
        batch = collate_examples([maker.make(0, index) for index in range(60, 72)])
        return model, PretrainingLoss(maker.settings, seed=3, maker=maker), batch

    return build


def count(model) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_sharing_is_counted_in_weights(make, small_config):
    plain = {share: count(make(share=share, disentangle=False)[0]) for share in SHARES}
    v, e, h = small_config.vocab_size, 12, 16
    tables = (v + 160 + 2) * e
    block = 4 * (h * h + h) + 2 * h * 24 + 24 + h + 4 * h
    own = block + (e * h + h) + 2 * e  # a block, a projection and a norm
    assert plain["embeddings"] - plain["all"] == own
    assert plain["none"] - plain["embeddings"] == tables
    different = {share: count(make(share=share)[0]) for share in SHARES}
    assert different["all"] - plain["all"] == different["embeddings"] - plain["embeddings"] == v * e
    assert different["none"] == plain["none"]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("order", ["sop", "none"])
def test_terms_and_gradients(make, tensors, share, order):
    model, loss, batch = make(order, share=share)
    terms = {term.name: term for term in loss(model, tensors(batch))}
    assert list(terms) == list(loss.weights) == ["mlm", "rtd", *(["sop"] if order == "sop" else [])]
    assert loss.weights["rtd"] == 50.0
    assert {name: int(term.count) for name, term in terms.items()} == loss.counts(batch)
    assert int(terms["rtd"].count) == batch.num_tokens
    sum(loss.weights[n] * t.mean for n, t in terms.items()).backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None]


def test_the_discriminator_reads_drawn_tokens(make, tensors):
    model, loss, batch = make()
    moved = tensors(batch)
    made = run_generator(model, moved, 3)
    is_hidden = moved.labels != -100
    original = torch.where(is_hidden, moved.labels, moved.input_ids)
    assert torch.equal(made.ids[~is_hidden], moved.input_ids[~is_hidden])
    assert torch.equal(made.is_replaced, made.ids != original)
    assert not made.is_replaced[~is_hidden].any()
    assert 0 < made.is_replaced.sum() < len(made.ids)
    hidden = model.model.forward_packed(made.ids, moved.packing, moved.token_type_ids)
    logits = model.heads["replaced"](hidden.last_hidden_state)
    wanted = functional.binary_cross_entropy_with_logits(
        logits, made.is_replaced.float(), reduction="sum"
    )
    assert torch.allclose(loss(model, moved)[1].total, wanted, rtol=RTOL)


def test_tokens_guessed_right_count_as_original(make, tensors):
    model, _, batch = make()
    moved = tensors(batch)
    with torch.no_grad():
        model.heads["mlm"].bias[:] = -100.0
        model.heads["mlm"].bias[17] = 100.0  # always draws 17
    moved.labels[moved.labels != -100] = 17
    made = run_generator(model, moved, 3)
    assert (made.ids[made.places] == 17).all()
    assert not made.is_replaced.any()


def test_drawing_does_not_depend_on_micro_batches_or_order(make, tensors):
    model, _, batch = make()
    whole = run_generator(model, tensors(batch), 3).ids
    parts = [run_generator(model, tensors(part), 3).ids for part in split_batch(batch, 90)]
    assert len(parts) > 2
    assert torch.equal(torch.cat(parts), whole)
    assert not torch.equal(run_generator(model, tensors(batch), 4).ids, whole)


def test_the_generator_is_the_shared_block_run_less_deep(make, tensors):
    model, _, batch = make(share="all", generator_depth=2, disentangle=False)
    moved = tensors(batch)
    inputs = (moved.input_ids, moved.packing, moved.token_type_ids, moved.position_ids)
    found = model.generator_hidden(*inputs)
    states = model.model.forward_packed(*inputs, output_hidden_states=True).hidden_states
    assert torch.allclose(found, states[2], rtol=RTOL)
    assert model.model.encoder.active_depth is None
    assert len(states) == 4
    model.set_active_depth(1)
    assert torch.allclose(model.generator_hidden(*inputs), states[1], rtol=RTOL)
    assert model.model.encoder.active_depth == 1


@pytest.mark.parametrize("share", ["all", "embeddings"])
def test_a_disentangled_table_moves_by_the_generator_alone(make, tensors, share):
    model, loss, batch = make(share=share)
    moved = tensors(batch)
    mlm, rtd, _ = (term.total for term in loss(model, moved))
    difference = model.model.embeddings.token.difference
    assert not difference.any()
    by_rtd = torch.autograd.grad(rtd, (model.table.weight, difference), allow_unused=True)
    assert by_rtd[0] is None and by_rtd[1].any()
    mlm = loss(model, moved)[0].total
    by_mlm = torch.autograd.grad(mlm, (model.table.weight, difference), allow_unused=True)
    assert by_mlm[0].any() and by_mlm[1] is None
    tied, loss, _ = make(share=share, disentangle=False)
    assert tied.model.embeddings.token.weight is tied.table.weight


def test_a_narrow_generator(make, tensors):
    model, loss, batch = make(generator_hidden_size=8, generator_depth=1)
    assert model.generator.config.num_attention_heads == 1
    assert model.generator.config.intermediate_size == 12
    assert len(loss(model, tensors(batch))) == 3


@pytest.mark.parametrize(
    ("rtd", "match"),
    [
        ({"generator_depth": 4}, "generator_depth is 4, the model has 3 depths"),
        ({"share": "all", "generator_hidden_size": 8}, "the block is that of the model"),
        ({"generator_hidden_size": 12}, "multiples of the size of an attention head, 8"),
    ],
)
def test_generators_that_do_not_fit(make, rtd, match):
    with pytest.raises(SettingsError, match=match):
        make(**rtd)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("order", ["sop", "none"])
def test_the_discriminator_is_saved_as_an_ordinary_model(make, tensors, tmp_path, share, order):
    model, loss, batch = make(order, share=share)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    sum(term.mean for term in loss(model, tensors(batch))).backward()
    optimizer.step()
    kept = model_to_save(model)
    assert isinstance(kept, AlbertWithHead if order == "sop" else AlbertModel)
    assert not kept.training
    save_model(kept, tmp_path / "model")
    if order == "sop":
        encoder = load_model(tmp_path / "model").model
    else:  # as fine-tuning opens it
        encoder = load_model(
            tmp_path / "model", "sequence", allow_new_head=True, allow_missing_pooler=True
        ).model
    moved = tensors(batch)
    inputs = (moved.input_ids, moved.packing, moved.token_type_ids)
    for ours in (kept.model if order == "sop" else kept, encoder):
        assert torch.equal(
            ours.forward_packed(*inputs).last_hidden_state,
            model.model.forward_packed(*inputs).last_hidden_state,
        )
    assert not any("difference" in name or "generator" in name for name in kept.state_dict())


@pytest.mark.parametrize("share", SHARES)
def test_state_is_stored_once_and_comes_back(make, tensors, share):
    model, loss, batch = make(share=share)
    state = model.state_dict()
    assert len({tensor.data_ptr() for tensor in state.values()}) == len(state)
    other, _, _ = make(share=share)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    other.load_state_dict(state)
    copied = copy.deepcopy(model)
    for twin in (other, copied):
        for ours, theirs in zip(
            loss(twin, tensors(batch)), loss(model, tensors(batch)), strict=True
        ):
            assert torch.equal(ours.total, theirs.total)


def test_checkpointing_gives_the_same_gradients(make, tensors):
    grads = []
    for value in (False, True, 2):
        model, loss, batch = make(share="all", generator_depth=2)
        model.train()
        model.set_checkpointing(value)
        sum(term.mean for term in loss(model, tensors(batch))).backward()
        grads.append(torch.cat([p.grad.view(-1) for p in model.parameters()]))
    assert all(torch.allclose(grads[0], other, rtol=1e-4, atol=1e-6) for other in grads[1:])
    model, _, _ = make(share="none")
    model.set_checkpointing("ffn")
    assert model.generator.encoder.checkpointing == "ffn"


def test_measure(make, tensors):
    model, loss, batch = make()
    sums = loss.measure(model, tensors(batch))
    made = run_generator(model, tensors(batch), 3)
    assert sums["rtd_count"] == batch.num_tokens
    assert sums["rtd_replaced"] == int(made.is_replaced.sum()) >= sums["rtd_found"]
    assert 0 < sums["rtd_correct"] <= sums["rtd_count"]
    means = {term.name: float(term.mean.detach()) for term in loss(model, tensors(batch))}
    for name in ("mlm", "rtd", "sop"):
        mean = sums[f"{name}_loss_sum"] / sums[f"{name}_count"]
        assert mean == pytest.approx(means[name], rel=1e-4)
    assert np.isfinite(list(sums.values())).all()
    assert sums["word_count"] > 0
