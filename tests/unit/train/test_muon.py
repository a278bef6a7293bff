from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from litebert.train.muon import Muon, orthogonalize
from litebert.train.optim import make_optimizer
from litebert.train.settings import TrainSettings

WEIGHT_ATOL = 1e-5
"""float32 rounding through five iterations of a quintic, over ten updates."""
BFLOAT16_ATOL = 1e-6
"""Both compute the direction in bfloat16 by the same operations; the update is float32."""

SHAPES = [(6, 6), (12, 5), (5, 12)]


def numpy_direction(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same quintic, on the singular values alone."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / max(1e-7, np.sqrt((values**2).sum()))
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return (left * values) @ right


@pytest.mark.parametrize("shape", SHAPES)
def test_a_direction_has_the_singular_vectors_of_the_matrix(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).normal(size=shape)
    found = orthogonalize(torch.from_numpy(matrix).float())
    np.testing.assert_allclose(found.numpy(), numpy_direction(matrix), atol=WEIGHT_ATOL)
    values = torch.linalg.svdvals(found)
    assert 0.5 < float(values.min()) <= float(values.max()) < 1.3
    assert found.dtype == torch.float32


def test_zeros_stay_zeros() -> None:
    assert not orthogonalize(torch.zeros(3, 4)).any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ratio", [1.0, 2.5])
def test_ten_steps_are_the_definition(shape: tuple[int, int], ratio: float) -> None:
    torch.manual_seed(0)
    model = nn.ModuleDict({"encoder": nn.Linear(shape[1], shape[0])})
    weight = model.get_parameter("encoder.weight")
    settings = TrainSettings(
        optimizer="muon", learning_rate=0.02, weight_decay=0.1, muon_lr_ratio=ratio
    )
    optimizer = make_optimizer(model, settings)
    expected, mean = weight.detach().double().numpy().copy(), np.zeros(shape)
    rng = np.random.default_rng(1)
    rate = 0.02 * ratio
    for _ in range(10):
        gradient = rng.normal(size=shape)
        weight.grad = torch.from_numpy(gradient).float()
        mean = 0.95 * mean + 0.05 * gradient
        ahead = 0.05 * gradient + 0.95 * mean
        expected = expected * (1 - rate * 0.1)
        expected = expected - rate * 0.2 * np.sqrt(max(shape)) * numpy_direction(ahead)
        optimizer.step()
    np.testing.assert_allclose(weight.detach().numpy(), expected, atol=WEIGHT_ATOL)


@pytest.mark.parametrize("shape", SHAPES)
def test_in_bfloat16_it_is_the_one_of_torch(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_bfloat16(matrix: Tensor) -> Tensor:
        return orthogonalize(matrix, torch.bfloat16)

    monkeypatch.setattr("litebert.train.muon.orthogonalize", in_bfloat16)
    torch.manual_seed(0)
    ours, theirs = (nn.Parameter(torch.ones(shape)) for _ in range(2))
    group = {"params": [ours], "part": "block"}
    our_optimizer = Muon([group], lr=0.01, weight_decay=0.1)
    their_optimizer = torch.optim.Muon(
        [theirs], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
    )
    for _ in range(8):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        our_optimizer.step()
        their_optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=BFLOAT16_ATOL)


@pytest.mark.parametrize("bias_correction", [True, False])
def test_everything_else_is_updated_by_adamw(bias_correction: bool) -> None:
    torch.manual_seed(0)
    models = [nn.ModuleDict({"encoder": nn.Linear(3, 3), "head": nn.Linear(3, 2)}) for _ in "ab"]
    models[1].load_state_dict(models[0].state_dict())
    gradients = [torch.randn(4, *p.shape) for p in models[0].parameters()]
    for model, name in zip(models, ("muon", "adamw"), strict=True):
        settings = TrainSettings(
            optimizer=name, learning_rate=0.01, bias_correction=bias_correction
        )
        optimizer = make_optimizer(model, settings)
        for step in range(4):
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.grad = gradient[step].clone()
            optimizer.step()
    first, second = (dict(model.named_parameters()) for model in models)
    same = {name for name in first if torch.equal(first[name], second[name])}
    assert same == set(first) - {"encoder.weight"}
