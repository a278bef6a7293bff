from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn

from litebert.checkpoint.skeleton import reserve, skeleton


def test_a_skeleton_has_shapes_and_draws_nothing() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with skeleton():
        model = nn.Sequential(nn.Linear(10**6, 10**6), nn.Embedding(10**7, 10**4), nn.LayerNorm(3))
        nn.init.trunc_normal_(tensor=model[0].weight)
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert model[0].weight.shape == (10**6, 10**6)
    assert torch.equal(torch.rand(3), expected)
    assert nn.Linear(2, 2).weight.device.type == "cpu"


def test_reserved_memory_keeps_what_may_be_trained() -> None:
    with skeleton():
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        model[0].bias.requires_grad_(False)
    reserve(model)
    assert {tensor.device.type for tensor in model.state_dict().values()} == {"cpu"}
    assert model[0].weight.requires_grad
    assert not model[0].bias.requires_grad
    assert model[1].num_batches_tracked.dtype == torch.int64


@pytest.mark.slow
def test_a_first_skeleton_imports_no_compiler() -> None:
    script = """
import sys
from litebert.checkpoint.skeleton import reserve, skeleton
from litebert.model.albert import AlbertWithHead
from litebert.model.presets import preset
import litebert.checkpoint.folder
before = set(sys.modules)
with skeleton():
    model = AlbertWithHead(preset("tiny"), "pretraining")
reserve(model)
print(len(set(sys.modules) - before), "sympy" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    count, has_sympy = done.stdout.split()
    assert int(count) < 20
    assert has_sympy == "False"
