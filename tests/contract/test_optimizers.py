"""Every optimizer: learns, decays the right weights, and goes on from a saved state bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

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


class Tiny(nn.Module):
    """An encoder and a head, by the names that the real model gives them."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8))
        self.head = nn.Linear(8, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.encoder(inputs))


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return Tiny()


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


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_a_step_that_the_scaler_finds_infinite_changes_neither_weights_nor_memory(
    name: str,
) -> None:
    model = make_model()
    optimizer = make_optimizer(model, TrainSettings(optimizer=name, learning_rate=0.05))
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def scaled_step(factor: float) -> None:
        loss = model(torch.ones(2, 4)).square().sum() * factor
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()

    scaled_step(1.0)
    weights = [p.detach().clone() for p in model.parameters()]
    memory = {key: value.clone() for key, value in optimizer_state(model, optimizer)[0].items()}
    scaled_step(float("inf"))
    assert all(map(torch.equal, weights, model.parameters()))
    after = optimizer_state(model, optimizer)[0]
    assert memory.keys() == after.keys()
    assert all(torch.equal(memory[key], after[key]) for key in memory)
    scaled_step(1.0)
    assert not any(map(torch.equal, weights, model.parameters()))


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_parameters_without_a_gradient_are_left_alone(name: str) -> None:
    model = make_model()
    optimizer = make_optimizer(model, TrainSettings(optimizer=name, learning_rate=0.05))
    before = {key: p.detach().clone() for key, p in model.named_parameters()}
    model.get_submodule("encoder")(torch.ones(1, 4)).square().sum().backward()
    optimizer.step()
    changed = {key for key, p in model.named_parameters() if not torch.equal(p, before[key])}
    assert changed == {key for key in before if key.startswith("encoder")}
    tensors, scalars = optimizer_state(model, optimizer)
    assert not [key for key in (*tensors, *scalars) if key.startswith("head")]
