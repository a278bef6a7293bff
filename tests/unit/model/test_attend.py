"""Attention of packed sequences against a plain loop, for every number of key-value heads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.model import attend as module
from litebert.model.attend import (
    HeadLayout,
    attend,
    attend_buckets,
    attend_padded,
)
from litebert.model.packing import Packing
from litebert.model.sight import look_probabilities

ATOL = 1e-12
"""float64; only the order of summation differs."""


def by_hand(qkv, layout, lengths):
    """One sequence and one head at a time, straight from the definition."""
    query, key, value = qkv.split(layout.widths, dim=1)
    outputs = []
    for q, k, v in zip(*(part.split(lengths) for part in (query, key, value)), strict=True):
        heads = []
        for head in range(layout.heads):
            group = head * layout.key_value_heads // layout.heads
            mine = slice(head * layout.size, (head + 1) * layout.size)
            theirs = slice(group * layout.size, (group + 1) * layout.size)
            scores = q[:, mine] @ k[:, theirs].T / layout.size**0.5
            heads.append(scores.softmax(-1) @ v[:, theirs])
        outputs.append(torch.cat(heads, dim=1))
    return torch.cat(outputs)


def make(lengths, kv, *, grad=True):
    layout = HeadLayout(4, kv, 3)
    qkv = torch.randn(sum(lengths), sum(layout.widths), dtype=torch.float64, requires_grad=grad)
    return qkv, layout, Packing.from_lengths(lengths)


@pytest.mark.parametrize("kv", [1, 2, 4])
@pytest.mark.parametrize("way", [attend, attend_buckets])
@given(lengths=st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any))
def test_outputs_and_gradients_equal_the_definition(way, kv, lengths):
    qkv, layout, packing = make(lengths, kv)
    expected = by_hand(qkv, layout, lengths)
    found = way(qkv, layout, packing)
    assert torch.allclose(found, expected, atol=ATOL, rtol=0)
    weight = torch.randn_like(expected)
    (a,) = torch.autograd.grad((found * weight).sum(), qkv)
    (b,) = torch.autograd.grad((expected * weight).sum(), qkv)
    assert torch.allclose(a, b, atol=ATOL, rtol=0)


@pytest.mark.parametrize("kv", [1, 4])
def test_long_sequences_take_the_blocked_kernel(kv, monkeypatch):
    qkv, layout, packing = make([module.FLASH_FROM + 5, 3, module.FLASH_FROM], kv)
    weight = torch.randn(packing.num_tokens, 12, dtype=torch.float64)
    results = []
    for flash_from in (module.FLASH_FROM, 10_000):
        monkeypatch.setattr(module, "FLASH_FROM", flash_from)
        found = attend(qkv, layout, packing)
        results.append((found, *torch.autograd.grad((found * weight).sum(), qkv)))
    for one, two in zip(*results, strict=True):
        assert torch.allclose(one, two, atol=ATOL, rtol=0)


def test_dropout_keeps_the_expectation_and_its_gradient_is_right():
    qkv, layout, packing = make([5, 2, 4], 2)

    def dropped(value):
        torch.manual_seed(3)  # the same mask at every call
        return attend(value, layout, packing, dropout_prob=0.4)

    assert torch.autograd.gradcheck(dropped, qkv)
    draws = torch.stack([attend(qkv, layout, packing, dropout_prob=0.3) for _ in range(200)])
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - by_hand(qkv, layout, [5, 2, 4])).abs() <= 6 * error + 1e-9).all()


def test_buckets_drop_attention_too():
    qkv, layout, packing = make([5, 2, 4], 4, grad=False)
    assert not torch.equal(
        attend_buckets(qkv, layout, packing, dropout_prob=0.5),
        attend_buckets(qkv, layout, packing),
    )


@pytest.mark.parametrize("kv", [1, 2, 4])
def test_padded_with_boolean_and_additive_masks(kv):
    lengths = [3, 5]
    qkv, layout, packing = make(lengths, kv, grad=False)
    mask = packing.mask()[:, None, None, :]
    additive = torch.zeros(mask.shape, dtype=qkv.dtype).masked_fill(~mask, -10_000.0)
    expected = by_hand(qkv, layout, lengths)
    for form in (mask, additive):
        found = attend_padded(packing.unpack(qkv), layout, form)
        assert torch.allclose(packing.pack(found), expected, atol=ATOL, rtol=0)


@pytest.mark.parametrize("kv", [1, 4])
def test_probabilities_sum_to_one_and_reproduce_the_output(kv):
    qkv, layout, packing = make([3, 4], kv, grad=False)
    value = qkv.split(layout.widths, dim=1)[2]
    found = look_probabilities(qkv, layout, packing, None, None, is_local=False)
    for probs, part, out in zip(
        found,
        value.split([3, 4]),
        by_hand(qkv, layout, [3, 4]).split([3, 4]),
        strict=True,
    ):
        assert torch.allclose(probs.sum(-1), torch.ones_like(probs[..., 0]))
        heads = part.view(len(part), kv, 3).repeat_interleave(4 // kv, dim=1).transpose(0, 1)
        assert torch.allclose((probs @ heads).transpose(0, 1).flatten(1), out, atol=ATOL)
