"""LAMB against a definition in NumPy, which knows nothing of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.lamb import Lamb, trust_ratio
from litebert.train.optim import make_optimizer, set_learning_rate
from litebert.train.settings import TrainSettings

WEIGHT_ATOL = 1e-6
"""float32 rounding of weights below 1 over 50 updates; the definition computes in float64."""

Array = NDArray[np.float64]


class NumpyLamb:
    """One weight under LAMB, step by step as the official code writes it."""

    def __init__(self, weight: Array, is_excluded: bool) -> None:
        self.weight, self.is_excluded = weight.copy(), is_excluded
        self.mean, self.square = np.zeros_like(weight), np.zeros_like(weight)

    def step(self, gradient: Array, rate: float, decay: float = 0.01) -> None:
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        update = self.mean / (np.sqrt(self.square) + 1e-6)
        ratio = 1.0
        if not self.is_excluded:
            update = update + decay * self.weight
            weight_norm = np.sqrt((self.weight**2).sum())
            update_norm = np.sqrt((update**2).sum())
            if weight_norm > 0 and update_norm > 0:
                ratio = weight_norm / update_norm
        self.weight = self.weight - rate * ratio * update


def tiny_model() -> AlbertWithHead:
    torch.manual_seed(3)
    config = AlbertConfig.from_dict(
        {
            "vocab_size": 30,
            "embedding_size": 4,
            "hidden_size": 8,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "intermediate_size": 16,
            "max_position_embeddings": 8,
        }
    )
    return AlbertWithHead(config, "pretraining")


@pytest.mark.parametrize("decay", [0.01, 0.0])
def test_fifty_steps_of_the_real_model_are_the_official_code(decay: float) -> None:
    model = tiny_model()
    settings = TrainSettings(optimizer="lamb", learning_rate=0.00176, weight_decay=decay)
    optimizer = make_optimizer(model, settings)
    expected = {
        name: NumpyLamb(
            p.detach().numpy().astype(np.float64), name.endswith("bias") or "norm" in name
        )
        for name, p in model.named_parameters()
    }
    assert {e.is_excluded for e in expected.values()} == {True, False}
    rng = np.random.default_rng(5)
    for step in range(50):
        rate = 0.00176 * (1 - step / 50)
        set_learning_rate(optimizer, rate)
        for name, parameter in model.named_parameters():
            gradient = rng.normal(size=tuple(parameter.shape)) * 10.0 ** rng.integers(-4, 1)
            if step % 7 == 3:
                gradient[...] = 0.0
            parameter.grad = torch.from_numpy(gradient).float()
            expected[name].step(parameter.grad.numpy().astype(np.float64), rate, decay)
        optimizer.step()
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(
            parameter.detach().numpy(), expected[name].weight, rtol=0, atol=WEIGHT_ATOL
        )


def test_the_ratio_is_one_where_a_norm_is_zero_and_is_not_clipped() -> None:
    zero, one = torch.zeros(2, 2), torch.ones(2, 2)
    assert trust_ratio(zero, one) == 1
    assert trust_ratio(one, zero) == 1
    assert trust_ratio(zero, zero) == 1
    assert trust_ratio(1e4 * one, 1e-4 * one) == pytest.approx(1e8)


def test_shared_weights_are_one_matrix_with_one_ratio() -> None:
    """The first update of a matrix has the size rate * |w|, however many depths gave gradient."""
    sizes: list[float] = []
    for depths in (1, 4):
        torch.manual_seed(0)
        shared = nn.Linear(6, 6, bias=False)
        before = shared.weight.detach().clone()
        optimizer = Lamb(shared.parameters(), lr=0.1, weight_decay=0.0)
        hidden = torch.randn(3, 6)
        for _ in range(depths):
            hidden = shared(hidden).tanh()
        hidden.sum().backward()
        optimizer.step()
        sizes.append(float((shared.weight.detach() - before).norm() / before.norm()))
    assert sizes == pytest.approx([0.1, 0.1])


def test_bias_correction_does_not_concern_it() -> None:
    weights: list[torch.Tensor] = []
    for flag in (True, False):
        torch.manual_seed(0)
        model = nn.Linear(3, 3)
        settings = TrainSettings(optimizer="lamb", learning_rate=0.1, bias_correction=flag)
        optimizer = make_optimizer(model, settings)
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*weights)
