"""The simple start: the first token is itself plus the mean of all, whatever stands where."""

from __future__ import annotations

import pytest
import torch

from litebert.model.albert import AlbertWithHead
from litebert.model.simple_start import WORD_SCALE, start_simple

SMALL = {"initializer_range": 0.02, "num_hidden_layers": 2}
EQUAL_MEANS = 0.98
"""Cosine; scores are near zero, so attention is nearly a plain mean."""


@pytest.mark.parametrize("changes", [{}, {"litebert": {"num_key_value_heads": 2}}])
def test_the_first_token_sees_the_mean_of_the_text(make_config, changes):
    model = AlbertWithHead(make_config(**SMALL, **changes), "sequence").eval()
    start_simple(model, torch.randn(50, 8))
    ids = torch.tensor([[2, 7, 9, 11, 30, 3]])
    seen = model(ids).pooler_output[0]
    shuffled = model(ids[:, [0, 4, 2, 1, 3, 5]]).pooler_output[0]
    other = model(torch.tensor([[2, 44, 21, 18, 40, 3]])).pooler_output[0]
    assert torch.cosine_similarity(seen, shuffled, dim=0) > EQUAL_MEANS
    assert torch.cosine_similarity(seen, other, dim=0) < EQUAL_MEANS
    assert seen.abs().max() < 1  # tanh is not saturated


def test_the_official_start_hardly_sees_the_text(make_config):
    model = AlbertWithHead(make_config(**SMALL), "sequence").eval()
    texts = ([[2, 7, 9, 11, 30, 3]], [[2, 44, 21, 18, 40, 3]])
    one, two = (model(torch.tensor(ids)).pooler_output[0] for ids in texts)
    assert torch.cosine_similarity(one, two, dim=0) > EQUAL_MEANS


@pytest.mark.parametrize("head", ["sequence", "token"])
def test_word_vectors_are_scaled_and_added(make_config, head):
    model = AlbertWithHead(make_config(**SMALL), head)  # `token` has no pooler
    before = model.model.embeddings.token.weight.detach().clone()
    words = torch.randn(50, 8)
    start_simple(model, words)
    assert torch.allclose(model.model.embeddings.token.weight, before + WORD_SCALE * words)


def test_equal_sizes_without_a_projection(make_config):
    model = AlbertWithHead(make_config(**SMALL, embedding_size=16), "sequence").eval()
    start_simple(model)
    assert model(torch.ones(1, 3, dtype=torch.long)).logits.isfinite().all()


@pytest.mark.parametrize("changes", [{}, {"litebert": {"num_key_value_heads": 2}}])
def test_a_token_attends_to_its_like(make_config, changes):
    """One attention head finds where a token occurs again; the others still see the mean."""
    torch.manual_seed(0)
    model = AlbertWithHead(make_config(**SMALL, **changes), "sequence").eval()
    start_simple(model, 10 * torch.randn(50, 8), has_matching_head=True)
    words = torch.randperm(40)[:20] + 5
    ids = torch.cat([words, words])[None]  # each token occurs twice
    attentions = model(ids, output_attentions=True).attentions[0][0]  # [A, S, S]
    like = torch.eye(20).repeat(2, 2).bool()
    assert attentions[0][like].mean() > 2 * attentions[0][~like].mean()
    assert attentions[1:][:, like].mean() < 1.1 * attentions[1:][:, ~like].mean()
