"""Conversions between plans, depths and vocabularies."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.resharing import reshare, resize_vocabulary, set_depth, share, unshare
from litebert.model.sharing import SHARING

IDS = torch.arange(12).view(2, 6)


def outputs(model):
    with torch.inference_mode():
        return model.eval()(IDS)


def disturb(model):
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.1)
    return model


@settings(max_examples=24)
@given(st.sampled_from(list(SHARING)), st.integers(1, 2), st.integers(1, 2))
def test_unshare_keeps_outputs_and_share_takes_it_back(make_config, sharing, groups, inner):
    groups = {"all": 1, "none": 4}.get(sharing, groups)
    config = make_config(
        num_hidden_layers=4,
        num_hidden_groups=groups,
        inner_group_num=inner,
        litebert={"sharing": sharing},
    )
    model = disturb(AlbertModel(config))
    free = unshare(model)
    assert len(free.encoder.ffns) == len(free.encoder.attentions) == 4 * inner
    assert torch.equal(outputs(free).last_hidden_state, outputs(model).last_hidden_state)
    back = share(free, sharing, groups=groups)
    assert back.config == config
    for name, value in model.state_dict().items():
        assert torch.equal(back.state_dict()[name], value)


def test_conversion_keeps_class_head_mode_and_the_original(make_config):
    model = AlbertWithHead(make_config(), "pretraining").eval().double()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    free = disturb(unshare(model))
    assert type(free) is AlbertWithHead
    assert free.head == "pretraining"
    assert not free.training
    assert free.model.pooler.weight.dtype == torch.float64
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    bare = unshare(AlbertModel(make_config(), add_pooler=False))
    assert bare.pooler is None
    assert bare.training


def test_sharing_different_weights_is_refused_unless_allowed(make_config):
    free = disturb(unshare(AlbertModel(make_config())))
    with pytest.raises(SettingsError, match=r"attentions \[0, 1, 2\] hold different weights"):
        share(free)
    stacked = torch.stack([ffn.up.weight for ffn in free.encoder.ffns])
    weight = share(free, lossy=True).encoder.ffns[0].up.weight
    assert torch.allclose(weight, stacked.mean(0))
    for reduce, index in (("first", 0), (2, 2)):
        weight = share(free, lossy=True, reduce=reduce).encoder.ffns[0].up.weight
        assert torch.equal(weight, stacked[index])
    with pytest.raises(SettingsError, match="reduce is 3, but 3 attentions are merged"):
        share(free, lossy=True, reduce=3)
    with pytest.raises(SettingsError, match="reduce is 'last'"):
        share(free, lossy=True, reduce="last")
    with pytest.raises(SettingsError, match="change the depth with set_depth first"):
        reshare(free, make_config(num_hidden_layers=5))


def test_depth_is_a_dial(make_config):
    model = AlbertModel(make_config())
    deep = set_depth(model, 7)
    states = deep.eval()(IDS, output_hidden_states=True).hidden_states
    assert len(states) == 8
    assert torch.equal(states[3], outputs(model).last_hidden_state)
    assert torch.equal(set_depth(model, 1).eval()(IDS).last_hidden_state, states[1])
    free = unshare(model)
    assert len(set_depth(free, 2).encoder.ffns) == 2
    assert torch.equal(set_depth(free, 2).eval()(IDS).last_hidden_state, states[2])
    with pytest.raises(SettingsError, match="need 4 attentions, the model stores 3"):
        set_depth(free, 4)
    with pytest.raises(SettingsError, match="num_hidden_layers"):
        set_depth(model, 0)
    groups = AlbertModel(make_config(num_hidden_groups=3))
    assert len(set_depth(groups, 2).encoder.ffns) == 2


@pytest.mark.parametrize("init", ["mean", "normal"])
@pytest.mark.parametrize("head", ["mlm", "sequence", None])
def test_resizing_the_vocabulary_keeps_rows_ties_and_bias(make_config, head, init):
    config = make_config()
    model = disturb(AlbertWithHead(config, head) if head else AlbertModel(config))
    bigger = resize_vocabulary(model, 60, init=init, generator=torch.Generator().manual_seed(1))
    name = "model.embeddings.token.weight" if head else "embeddings.token.weight"
    old, new = model.get_parameter(name), bigger.get_parameter(name)
    assert bigger.config.vocab_size == 60
    assert new.shape == (60, 8)
    assert torch.equal(new[:50], old)
    if init == "mean":
        assert torch.allclose(new[50:], old.mean(0).expand(10, 8))
    else:
        assert 0 < new[50:].std() < 2 * config.initializer_range
    assert torch.equal(outputs(bigger).last_hidden_state, outputs(model).last_hidden_state)
    if head == "mlm":
        assert torch.equal(outputs(bigger).logits[..., :50], outputs(model).logits)
        assert bigger.heads.mlm.bias.shape == (60,)
        bigger(IDS, labels=IDS).loss.backward()
        assert bigger.model.embeddings.token.weight.grad[55].any()  # still tied
    back = resize_vocabulary(bigger, 50)
    assert all(torch.equal(back.state_dict()[n], v) for n, v in model.state_dict().items())


def test_impossible_vocabularies(make_config):
    model = AlbertModel(make_config(pad_token_id=3))
    with pytest.raises(SettingsError, match="outside the vocabulary of 3"):
        resize_vocabulary(model, 3)
    with pytest.raises(SettingsError, match="vocab_size"):
        resize_vocabulary(model, 0)
    with pytest.raises(SettingsError, match="init is 'zero'"):
        resize_vocabulary(model, 60, init="zero")
