from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.packing import Packing
from litebert.model.recompute import can_recompute, gelu_linear

CONFIG = AlbertConfig.from_dict(
    {
        "vocab_size": 30,
        "embedding_size": 8,
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
)


@pytest.mark.parametrize("form", ["tanh", "none"])
def test_gradient_is_right(form: str) -> None:
    torch.manual_seed(0)
    parts = [
        torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((5, 6), (3, 6), (3,))
    ]
    assert torch.autograd.gradcheck(lambda *p: gelu_linear(*p, form), parts)


@pytest.mark.parametrize("act", ["gelu", "gelu_new", "relu"])
def test_the_model_trains_as_with_the_plain_functions(
    act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: the recomputed activation is the one that was not kept."""
    torch.manual_seed(0)
    model = AlbertWithHead(CONFIG.replace(hidden_act=act), "mlm")
    ids, labels = torch.randint(0, 30, (2, 12))
    packing = Packing.from_lengths([5, 7])
    results: list[list[torch.Tensor]] = []
    for is_allowed in (True, False):
        if not is_allowed:
            monkeypatch.setattr("litebert.model.layers.can_recompute", lambda *parts: False)
        model.zero_grad()
        loss = model.forward_packed(ids, packing, labels=labels).loss
        assert loss is not None
        loss.backward()
        grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        results.append([loss.detach(), *grads])
    for ours, plain in zip(*results, strict=True):
        assert torch.equal(ours, plain)


def test_only_where_it_may() -> None:
    inner, weight = torch.ones(4, 6, requires_grad=True), torch.ones(3, 6)
    assert can_recompute(inner, weight)
    assert not can_recompute(inner.detach(), weight)
    assert not can_recompute(inner[None], weight)
    assert not can_recompute(inner, weight.double())
    with torch.no_grad():
        assert not can_recompute(inner * 1, weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not can_recompute(inner, weight)
    compiled = torch.compile(can_recompute, backend="eager", fullgraph=True)
    assert not compiled(inner, weight)
    result = functional.gelu(inner, approximate="tanh") @ weight.t()
    assert torch.allclose(gelu_linear(inner, weight, torch.zeros(3), "tanh"), result)
