"""Running the first depths only: a shallower model with the same weights, or a refusal."""

from __future__ import annotations

import pytest
import torch

from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.resharing import set_depth

GRAD_ATOL = 1e-6
"""The same operations in the same order."""


@pytest.mark.parametrize("recompute", [False, True, "ffn", 2])
@pytest.mark.parametrize(("sharing", "groups", "inner"), [("all", 1, 1), ("cycle", 2, 2)])
def test_the_first_depths_are_the_shallower_model(make_config, sharing, groups, inner, recompute):
    config = make_config(
        num_hidden_layers=5,
        num_hidden_groups=groups,
        inner_group_num=inner,
        litebert={"sharing": sharing},
    )
    model = AlbertModel(config).train()
    shallow = set_depth(model, 3)
    model.set_active_depth(3)
    ids = torch.randint(0, 50, (2, 7))
    for one in (model, shallow):
        one.set_checkpointing(recompute)
        one(ids).pooler_output.square().sum().backward()
    a, b = model(ids, output_hidden_states=True), shallow(ids, output_hidden_states=True)
    assert torch.equal(a.last_hidden_state, b.last_hidden_state)
    assert len(a.hidden_states) == 4
    for (name, mine), other in zip(model.named_parameters(), shallow.parameters(), strict=True):
        assert torch.allclose(mine.grad, other.grad, atol=GRAD_ATOL), name
    model.set_active_depth(None)
    assert len(model(ids, output_hidden_states=True).hidden_states) == 6


@pytest.mark.parametrize("wrong", [0, -1, 4, True, 1.5, "2"])
def test_wrong_numbers_are_refused(make_config, wrong):
    with pytest.raises(SettingsError, match="allowed are 1 to num_hidden_layers = 3, or None"):
        AlbertWithHead(make_config()).set_active_depth(wrong)


def test_weights_that_would_not_train_are_named(make_config):
    model = AlbertWithHead(make_config(litebert={"sharing": "attention_only"}))
    with pytest.raises(SettingsError, match="leave out 2 of 3 ffns, which would not train"):
        model.set_active_depth(1)
    assert model.model.encoder.active_depth is None
    model.set_active_depth(3)
    unshared = AlbertModel(make_config(litebert={"sharing": "none"}))
    with pytest.raises(SettingsError, match="1 of 3 attentions and 1 of 3 ffns"):
        unshared.set_active_depth(2)
