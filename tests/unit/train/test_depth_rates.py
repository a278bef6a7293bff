"""Rates that fall with depth, on the real model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.optim import make_optimizer, set_learning_rate
from litebert.train.options import set_options
from litebert.train.settings import TrainSettings


def build(**options: Any) -> AlbertWithHead:
    return AlbertWithHead(
        AlbertConfig.from_dict(
            {
                "vocab_size": 20,
                "embedding_size": 4,
                "hidden_size": 8,
                "num_hidden_layers": 3,
                "num_attention_heads": 2,
                "intermediate_size": 16,
                "max_position_embeddings": 8,
                "litebert": options,
            }
        )
    )


def rates(model: nn.Module, settings: TrainSettings) -> dict[str, float]:
    """Name -> rate after it was set to 1."""
    optimizer = make_optimizer(model, settings)
    set_learning_rate(optimizer, 1.0)
    found = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    return {name: found[id(p)] for name, p in model.named_parameters()}


@pytest.mark.parametrize("optimizer", ["adamw", "lamb", "muon"])
def test_shared_and_unshared(optimizer: str) -> None:
    settings = TrainSettings(depth_decay=0.5, optimizer=optimizer)
    for name, rate in rates(build(lora_rank=1, depth_norms=True), settings).items():
        if ".embeddings." in name:
            assert rate == 0.125
        elif ".adapters." in name:
            assert rate == 0.5 ** (2 - int(name.split(".adapters.")[1][0]))
        else:
            assert rate == 1.0
    for name, rate in rates(build(sharing="none"), settings).items():
        for kind in (".attentions.", ".ffns."):
            if kind in name:
                assert rate == 0.5 ** (2 - int(name.split(kind)[1][0]))
        if name.startswith(("heads.", "model.pooler")):
            assert rate == 1.0


def test_muon_keeps_its_own_ratio() -> None:
    settings = TrainSettings(depth_decay=0.5, optimizer="muon", muon_lr_ratio=3.0)
    found = rates(build(sharing="none"), settings)
    assert found["model.encoder.ffns.0.up.weight"] == 0.75
    assert found["model.encoder.ffns.0.up.bias"] == 0.25


def test_without_it_groups_are_as_ever() -> None:
    optimizer = make_optimizer(build(), TrainSettings())
    assert [group["part"] for group in optimizer.param_groups] == ["block", "matrix", "vector"]
    assert not any("lr_ratio" in group for group in optimizer.param_groups)


def test_the_encoder_is_told() -> None:
    model = build()
    set_options(model, TrainSettings(depth_decay=0.5))
    assert model.model.encoder.decay is not None and model.model.encoder.decay.decay == 0.5
    set_options(model, TrainSettings())
    assert model.model.encoder.decay is None
    with pytest.raises(SettingsError, match="leave 'depth_decay' unset"):
        set_options(nn.Linear(1, 1), TrainSettings(depth_decay=0.9))


def test_muon_step_with_cut_groups_moves_everything() -> None:
    model = build(sharing="none")
    optimizer = make_optimizer(model, TrainSettings(depth_decay=0.5, optimizer="muon"))
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter) + torch.randn_like(parameter)
    set_learning_rate(optimizer, 0.1)
    optimizer.step()
    assert all(not torch.equal(p, before[name]) for name, p in model.named_parameters())
