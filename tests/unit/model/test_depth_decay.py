"""Decay by depth: gradients of shared weights against the weighted sum over unshared copies."""

from __future__ import annotations

import pytest
import torch
from tests.unit.model.option_cases import OPTIONS

from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel
from litebert.model.depth_decay import DepthDecay, scale_gradient
from litebert.model.packing import Packing
from litebert.model.resharing import unshare

RTOL, ATOL = 1e-9, 1e-10
"""float64; factors are multiplied in another order."""
DECAY = 0.7
LENGTHS = [7, 1, 4]
PLANS = [
    {"sharing": "all"},
    {"sharing": "none"},
    {"sharing": "attention_only"},
    {"sharing": "ffn_only"},
    {"sharing": "cycle", "groups": 2},
    {"sharing": "groups", "groups": 2},
    {"sharing": "all", "inner": 2},
]


def build(make_config, sharing, groups=1, inner=1, name="none", depths=4, **changes):
    config = make_config(
        num_hidden_layers=depths,
        num_hidden_groups=groups,
        inner_group_num=inner,
        litebert=OPTIONS[name] | {"sharing": sharing},
        **changes,
    )
    model = AlbertModel(config).double().train()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.2)
    return model


def gradients(model, decay=None):
    """(output, name -> gradient) of a fixed random function of the hidden states."""
    torch.manual_seed(3)
    total = sum(LENGTHS)
    ids, seen = torch.randint(0, 50, (total,)), torch.randn(total, 16).double()
    model.zero_grad()
    model.encoder.set_depth_decay(decay)
    out = model.forward_packed(ids, Packing.from_lengths(LENGTHS)).last_hidden_state
    (out * seen).sum().backward()
    model.encoder.set_depth_decay(None)
    return out, {n: w.grad.clone() for n, w in model.named_parameters() if w.grad is not None}


def by_copies(model, rates):
    """The definition, slowly: each application has weights of its own, and each depth its factor.

    What the rate of a stored weight contributes is taken out again.
    """
    config = model.config
    free = unshare(model)
    _, found = gradients(free)
    last, inner = config.num_hidden_layers - 1, config.inner_group_num
    wanted = {}
    for number, (step, copy) in enumerate(zip(config.plan, free.config.plan, strict=True)):
        factor = DECAY ** (last - number // inner)
        for kind, old, new in (
            ("attentions", step.attention, copy.attention),
            ("ffns", step.ffn, copy.ffn),
        ):
            prefix = f"encoder.{kind}.{new}."
            for name, grad in found.items():
                if name.startswith(prefix):
                    key = f"encoder.{kind}.{old}.{name.removeprefix(prefix)}"
                    wanted[key] = wanted.get(key, 0) + factor / rates[kind][old] * grad
    return wanted


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: " ".join(map(str, plan.values())))
def test_gradient_of_stored_weights_is_the_weighted_sum_over_copies(make_config, plan):
    model = build(make_config, **plan)
    decay = DepthDecay(model.config.plan, model.config.inner_group_num, DECAY)
    wanted = by_copies(model, {"attentions": decay.attention_rates, "ffns": decay.ffn_rates})
    plain_out, plain = gradients(model)
    out, found = gradients(model, DECAY)
    assert torch.equal(out, plain_out)
    for name, grad in wanted.items():
        torch.testing.assert_close(found[name], grad, rtol=RTOL, atol=ATOL)
    # What flows on to earlier depths is not scaled: the embeddings see the plain gradient.
    for name in found:
        if name.startswith("embeddings."):
            torch.testing.assert_close(found[name], plain[name], rtol=RTOL, atol=ATOL)


def test_everything_shared_has_rate_1_and_falling_factors(make_config):
    decay = DepthDecay(make_config(num_hidden_layers=4).plan, 1, 0.5)
    assert decay.attention_scales == decay.ffn_scales == [0.125, 0.25, 0.5, 1.0]
    assert decay.attention_rates == decay.ffn_rates == [1.0]
    assert decay.step_rates == [0.125, 0.25, 0.5, 1.0]
    assert decay.embedding_rate == 0.0625


def test_nothing_shared_is_the_usual_decay_of_rates(make_config):
    config = make_config(num_hidden_layers=3, litebert={"sharing": "none"})
    decay = DepthDecay(config.plan, 1, 0.5)
    assert decay.attention_scales == decay.ffn_scales == [1.0, 1.0, 1.0]
    assert decay.attention_rates == decay.ffn_rates == [0.25, 0.5, 1.0]


@pytest.mark.parametrize("name", ["rotary", "disentangled", "all with rotary", "bottlenecks"])
@pytest.mark.parametrize("recompute", [False, True, "ffn", 2])
def test_with_options_and_recomputing(make_config, name, recompute):
    model = build(make_config, "all", name=name, hidden_act="gelu")
    wanted = by_copies(model, {"attentions": [1.0], "ffns": [1.0]})
    model.set_checkpointing(recompute)
    _, found = gradients(model, DECAY)
    for key, grad in wanted.items():
        torch.testing.assert_close(found[key], grad, rtol=RTOL, atol=ATOL)


def test_1_is_the_plain_gradient_bit_for_bit(make_config):
    model = build(make_config, "all").float()
    for a, b in zip(gradients(model)[1].values(), gradients(model, 1.0)[1].values(), strict=True):
        assert torch.equal(a, b)


def test_without_gradient_nothing_is_added(make_config):
    hidden = torch.ones(2, 3)
    with torch.no_grad():
        assert scale_gradient(hidden, 0.5) is hidden
    assert scale_gradient(hidden, 1.0) is hidden


@pytest.mark.parametrize("decay", [0.0, -0.5, 1.01])
def test_decay_out_of_range_is_refused(make_config, decay):
    with pytest.raises(SettingsError, match="allowed is above 0 and at most 1"):
        AlbertModel(make_config()).encoder.set_depth_decay(decay)
