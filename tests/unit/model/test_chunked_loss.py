"""The chunked softmax loss: the plain one, in pieces."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from litebert.errors import DataError
from litebert.model.chunked_loss import chunked_cross_entropy, chunked_scores
from litebert.model.heads import MlmHead

RTOL = 1e-6
"""float32 sums of some hundred terms in another order."""
HALF_RTOL = 2e-2
"""Eight bits of mantissa in bfloat16."""
LOSS_SCALE = 2.0**18
"""Larger than any float16 number: the scale must not meet a half-precision gradient."""


def make(rows=37, size=24, vocab=301, dtype=torch.float32):
    torch.manual_seed(3)
    inner = torch.randn(rows, size, dtype=dtype, requires_grad=True)
    table = (0.3 * torch.randn(vocab, size, dtype=dtype)).requires_grad_()
    bias = (0.1 * torch.randn(vocab, dtype=dtype)).requires_grad_()
    return inner, table, bias, torch.randint(0, vocab, (rows,))


def plain(inner, table, bias, targets):
    logits = functional.linear(inner, table, bias)
    return functional.cross_entropy(logits, targets, reduction="sum")


@pytest.mark.parametrize("rows", [1, 5, 36, 37, 500, None])
def test_loss_and_gradients_are_those_of_the_plain_loss(rows):
    parts = make()
    targets = parts[3]
    expected = plain(*parts)
    wanted = torch.autograd.grad(expected * 0.7, parts[:3])
    found = chunked_cross_entropy(*parts, chunk_rows=rows)
    assert torch.allclose(found, expected, rtol=RTOL)
    for ours, theirs in zip(torch.autograd.grad(found * 0.7, parts[:3]), wanted, strict=True):
        assert (ours - theirs).abs().max() <= RTOL * max(1.0, float(theirs.abs().max())) * len(
            targets
        )


def test_gradcheck():
    inner, table, bias, targets = make(rows=7, size=5, vocab=11, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda *values: chunked_cross_entropy(*values, targets, chunk_rows=3), (inner, table, bias)
    )


def test_only_the_gradients_that_are_wanted():
    inner, table, bias, targets = make()
    loss = chunked_cross_entropy(inner.detach(), table, bias.detach(), targets)
    loss.backward()
    assert table.grad is not None
    assert not chunked_cross_entropy(
        *(t.detach() for t in (inner, table, bias)), targets
    ).requires_grad


def test_no_rows():
    inner, table, bias, targets = make()
    loss = chunked_cross_entropy(inner[:0], table, bias, targets[:0])
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert not table.grad.any()
    scores = chunked_scores(inner[:0], table, bias, targets[:0], torch.zeros(0))
    assert scores.loss.shape == scores.best.shape == scores.drawn.shape == (0,)


def test_the_table_gets_its_gradient_from_both_of_its_uses():
    table = torch.nn.Embedding(50, 6)
    ids, targets = torch.tensor([4, 7, 7]), torch.tensor([1, 2, 3])
    bias = torch.zeros(50)
    chunked_cross_entropy(table(ids), table.weight, bias, targets, chunk_rows=2).backward()
    ours, table.weight.grad = table.weight.grad, None
    plain(table(ids), table.weight, bias, targets).backward()
    assert torch.allclose(ours, table.weight.grad, rtol=1e-5, atol=1e-6)


def test_large_logits_do_not_overflow():
    inner, table, bias, targets = make()
    found = chunked_cross_entropy(inner * 1e3, table, bias, targets, chunk_rows=8)
    assert torch.allclose(found, plain(inner * 1e3, table, bias, targets), rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    parts = make()
    expected = plain(*parts)
    wanted = torch.autograd.grad(expected, parts[:3])
    with torch.autocast("cpu", dtype):
        found = chunked_cross_entropy(*parts, chunk_rows=16)
    assert found.dtype == torch.float32
    assert torch.allclose(found, expected, rtol=HALF_RTOL)
    scaled = torch.autograd.grad(found * LOSS_SCALE, parts[:3])
    for ours, theirs in zip(scaled, wanted, strict=True):
        assert ours.dtype == torch.float32
        assert (ours / LOSS_SCALE - theirs).norm() <= HALF_RTOL * theirs.norm()


@pytest.mark.parametrize("wrong", [-1, 301])
def test_a_target_outside_the_vocabulary(wrong):
    inner, table, bias, targets = make()
    targets[2] = wrong
    with pytest.raises(DataError, match=f"{wrong}.*allowed are 0 to 300"):
        chunked_cross_entropy(inner, table, bias, targets)
    with pytest.raises(DataError, match="allowed are 0 to 300"):
        chunked_scores(inner, table, bias, targets)


def test_scores():
    inner, table, bias, targets = make()
    logits = functional.linear(inner, table, bias)
    scores = chunked_scores(inner, table, bias, targets)
    each = functional.cross_entropy(logits, targets, reduction="none")
    assert torch.allclose(scores.loss, each, rtol=1e-5)
    assert torch.equal(scores.best, logits.argmax(1))
    assert scores.drawn is None


def test_drawing_follows_the_distribution():
    torch.manual_seed(0)
    rows, vocab = 20_000, 5
    inner = torch.ones(rows, 1)
    table = torch.tensor([0.5, 0.1, 0.2, 0.15, 0.05]).log()[:, None]
    uniforms = torch.rand(rows, dtype=torch.float64)
    targets = torch.zeros(rows, dtype=torch.int64)
    drawn = chunked_scores(inner, table, torch.zeros(vocab), targets, uniforms).drawn
    shares = torch.bincount(drawn, minlength=vocab) / rows
    expected = torch.tensor([0.5, 0.1, 0.2, 0.15, 0.05])
    assert ((shares - expected).abs() < 4 * (expected * (1 - expected) / rows).sqrt()).all()
    again = chunked_scores(inner[:7], table, torch.zeros(vocab), targets[:7], uniforms[:7]).drawn
    assert torch.equal(again, drawn[:7])
    edge = torch.tensor([0.0, 1.0 - 1e-16], dtype=torch.float64)
    drawn = chunked_scores(inner[:2], table, torch.zeros(vocab), targets[:2], edge).drawn
    assert drawn.tolist() == [0, 4]


def test_the_head_has_one_loss(make_config):
    torch.manual_seed(1)
    config = make_config()
    head = MlmHead(config)
    hidden = torch.randn(9, config.hidden_size)
    table = torch.randn(config.vocab_size, config.embedding_size)
    targets = torch.arange(9)
    expected = functional.cross_entropy(head(hidden, table), targets, reduction="sum")
    assert torch.allclose(head.loss(hidden, table, targets), expected, rtol=RTOL)
