from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from litebert.errors import CheckpointError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.optim import (
    load_optimizer_state,
    make_optimizer,
    optimizer_state,
    parameter_groups,
    set_learning_rate,
)
from litebert.train.settings import TrainSettings

STEP_ATOL = 1e-6
"""float32 rounding over five updates of numbers of order one."""


def test_official_groups_on_the_real_model() -> None:
    config = AlbertConfig.from_dict(
        {
            "vocab_size": 20,
            "embedding_size": 4,
            "hidden_size": 8,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 16,
            "max_position_embeddings": 8,
        }
    )
    for head in ("pretraining", "sequence", "span"):
        model = AlbertWithHead(config, head)
        names = {parameter: name for name, parameter in model.named_parameters()}
        block, matrix, vector = parameter_groups(model, 0.01)
        assert [g["part"] for g in (block, matrix, vector)] == ["block", "matrix", "vector"]
        assert [g["weight_decay"] for g in (block, matrix, vector)] == [0.01, 0.01, 0.0]
        for parameter in vector["params"]:
            name = names.pop(parameter)
            assert name.endswith("bias") or "norm" in name
        for parameter in (*block["params"], *matrix["params"]):
            name = names.pop(parameter)
            assert not name.endswith("bias") and "norm" not in name
            assert (".encoder." in name) == any(parameter is p for p in block["params"])
        assert not names


@pytest.mark.parametrize("bias_correction", [True, False])
def test_adamw_is_the_paper_and_the_official_code(bias_correction: bool) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    settings = TrainSettings(
        learning_rate=0.1, weight_decay=0.3, bias_correction=bias_correction, adam_epsilon=1e-6
    )
    optimizer = make_optimizer(model, settings)
    expected = [p.detach().numpy().copy() for p in (model.weight, model.bias)]
    m = [np.zeros_like(e) for e in expected]
    v = [np.zeros_like(e) for e in expected]
    rng = np.random.default_rng(1)
    for t in range(1, 6):
        for i, (parameter, decay) in enumerate(((model.weight, 0.3), (model.bias, 0.0))):
            gradient = rng.normal(size=parameter.shape).astype(np.float32)
            parameter.grad = torch.from_numpy(gradient.copy())
            m[i] = 0.9 * m[i] + 0.1 * gradient
            v[i] = 0.999 * v[i] + 0.001 * gradient**2
            m_hat = m[i] / (1 - 0.9**t) if bias_correction else m[i]
            v_hat = v[i] / (1 - 0.999**t) if bias_correction else v[i]
            update = m_hat / (np.sqrt(v_hat) + 1e-6) + decay * expected[i]
            expected[i] = expected[i] - 0.1 * update
        optimizer.step()
        for parameter, wanted in zip((model.weight, model.bias), expected, strict=True):
            np.testing.assert_allclose(parameter.detach().numpy(), wanted, atol=STEP_ATOL)


def test_a_state_of_another_model_is_refused() -> None:
    model = nn.Linear(3, 2)
    optimizer = make_optimizer(model, TrainSettings())
    with pytest.raises(CheckpointError, match="knows parameter 'nobody'"):
        load_optimizer_state(model, optimizer, {"nobody/exp_avg": torch.zeros(1)}, {})


def test_a_path_that_leads_to_no_optimizer_is_refused() -> None:
    with pytest.raises(SettingsError, match="made a dict"):
        make_optimizer(nn.Linear(2, 2), TrainSettings(optimizer=f"{__name__}:not_one"))
    with pytest.raises(SettingsError, match="cannot be called"):
        make_optimizer(nn.Linear(2, 2), TrainSettings(optimizer="math:sqrt"))
    with pytest.raises(SettingsError, match="unknown optimizer 'adamv'"):
        make_optimizer(nn.Linear(2, 2), TrainSettings(optimizer="adamv"))


def not_one(groups: list[dict[str, Any]], settings: TrainSettings) -> dict[str, Any]:
    return {}


def test_nothing_to_train() -> None:
    model = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(SettingsError, match="unfreeze"):
        make_optimizer(model, TrainSettings())


def test_frozen_parameters_are_left_out() -> None:
    model = nn.Linear(2, 2)
    model.weight.requires_grad_(False)
    optimizer = make_optimizer(model, TrainSettings())
    assert [group["params"] for group in optimizer.param_groups] == [[model.bias]]
    with pytest.raises(SettingsError, match="no trained matrix in a block"):
        make_optimizer(model, TrainSettings(optimizer="muon"))


def test_the_rate_of_a_group_has_its_own_ratio() -> None:
    model = nn.ModuleDict({"encoder": nn.Linear(2, 2), "head": nn.Linear(2, 2)})
    settings = TrainSettings(optimizer="muon", learning_rate=0.01, muon_lr_ratio=3.0)
    optimizer = make_optimizer(model, settings)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.03, 0.01, 0.01])
    set_learning_rate(optimizer, 0.5)
    assert [group["lr"] for group in optimizer.param_groups] == [1.5, 0.5, 0.5]


def test_memory_that_is_no_tensor_and_no_number() -> None:
    model = nn.Linear(2, 2)
    optimizer = make_optimizer(model, TrainSettings(optimizer="torch.optim:SGD"))
    optimizer.state[model.weight] = {"plain": 1.5, "odd": [torch.zeros(1)]}
    with pytest.raises(CheckpointError, match="keeps a list as 'odd'"):
        optimizer_state(model, optimizer)
    del optimizer.state[model.weight]["odd"]
    tensors, scalars = optimizer_state(model, optimizer)
    load_optimizer_state(model, optimizer, tensors, scalars)
    assert optimizer.state[model.weight] == {"plain": 1.5}
