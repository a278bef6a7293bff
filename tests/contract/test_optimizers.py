"""Every optimizer: learns, decays the right weights, and goes on from a saved state bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from litebert.train.optim import (
    OPTIMIZERS,
    load_optimizer_state,
    make_optimizer,
    optimizer_state,
    set_learning_rate,
)
from litebert.train.settings import TrainSettings

OUTSIDE = """
import torch

def plain(groups, settings):
    return torch.optim.SGD(groups, lr=settings.learning_rate, momentum=0.9)
"""
NAMES = [*OPTIMIZERS, "torch.optim:SGD", "torch.optim:Adagrad", "outside_optimizer:plain"]


@pytest.fixture(autouse=True)
def _with_an_outside_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside_optimizer.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(OPTIMIZERS, "_items", dict(OPTIMIZERS._items))


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1))


def update(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> list[float]:
    losses: list[float] = []
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        inputs = torch.randn(16, 4, generator=generator)
        loss = (model(inputs)[:, 0] - inputs.sum(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.parametrize("name", NAMES)
def test_an_optimizer_learns(name: str) -> None:
    model = make_model()
    optimizer = make_optimizer(model, TrainSettings(optimizer=name, learning_rate=0.05))
    losses = update(model, optimizer, range(40))
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


@pytest.mark.parametrize("name", NAMES)
def test_a_rate_of_zero_changes_nothing_and_only_matrices_decay(name: str) -> None:
    model = make_model()
    settings = TrainSettings(optimizer=name, learning_rate=0.1, weight_decay=0.5)
    optimizer = make_optimizer(model, settings)
    decay = {
        id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]
    }
    assert {p.ndim: decay[id(p)] for p in model.parameters()} == {1: 0.0, 2: 0.5}
    before = [p.clone() for p in model.parameters()]
    set_learning_rate(optimizer, 0.0)
    update(model, optimizer, range(2))
    assert all(map(torch.equal, before, model.parameters()))


@pytest.mark.parametrize("bias_correction", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_saved_state_goes_on_bit_for_bit(name: str, bias_correction: bool) -> None:
    settings = TrainSettings(optimizer=name, learning_rate=0.05, bias_correction=bias_correction)
    whole, cut = make_model(), make_model()
    update(whole, make_optimizer(whole, settings), range(6))
    first = make_optimizer(cut, settings)
    update(cut, first, range(3))
    tensors, scalars = optimizer_state(cut, first)
    second = make_optimizer(cut, settings)
    load_optimizer_state(cut, second, tensors, json.loads(json.dumps(scalars)))
    update(cut, second, range(3, 6))
    assert all(map(torch.equal, whole.parameters(), cut.parameters()))


def test_a_fault_of_a_registered_optimizer_keeps_its_traceback() -> None:
    OPTIMIZERS.register("crooked")(abs)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        make_optimizer(make_model(), TrainSettings(optimizer="crooked"))
