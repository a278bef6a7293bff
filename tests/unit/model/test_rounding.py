"""Rounding in torch means what the integers mean; gradients pass it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from litebert.checkpoint.int8 import ActivationRange, quantize_matrix
from litebert.checkpoint.rounded import attach_rounding
from litebert.compress.quantize import calibrate
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.packing import Packing
from litebert.model.quantization import Quantization
from litebert.model.rounding import quantized_layers, round_activations

NUMBERS = st.floats(-(2.0**20), 2.0**20, width=32, allow_subnormal=False)


@given(hnp.arrays(np.float32, st.integers(1, 20), elements=NUMBERS))
def test_activations_are_rounded_as_onnx_rounds_them(numbers: np.ndarray) -> None:
    found = ActivationRange.of(float(numbers.min()), float(numbers.max()))
    wanted = found.dequantize(found.quantize(numbers))
    ends = torch.tensor([numbers.min(), numbers.max()])
    rounded = round_activations(torch.from_numpy(numbers), *ends).numpy()
    # A number halfway between two levels may fall to either where the division is rounded.
    assert (np.abs(rounded - wanted) <= found.scale * 1.01).all()
    assert (rounded == wanted).mean() > 0.8 or len(numbers) < 5


def tiny(**quantization: Any) -> AlbertConfig:
    return AlbertConfig(
        vocab_size=40,
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        litebert={"quantization": Quantization(**quantization)},  # pyright: ignore[reportArgumentType]
    )


def model_of(config: AlbertConfig) -> AlbertModel:
    torch.manual_seed(0)
    model = AlbertModel(config).eval()
    attach_rounding(model)
    return model


IDS = torch.randint(0, 40, (12,), generator=torch.Generator().manual_seed(1))
PACKING = Packing.from_lengths([7, 5])


def test_names_and_stored_weights_stay() -> None:
    plain = AlbertModel(tiny().replace(litebert={"quantization": None}))
    model = model_of(tiny(weights="int7"))
    centers = {n for n in model.state_dict() if n.endswith("_center")}
    assert [n for n in model.state_dict() if n not in centers] == list(plain.state_dict())
    assert len(centers) == 4
    assert [n for n, _ in model.named_parameters()] == [n for n, _ in plain.named_parameters()]
    name = "encoder.ffns.0.up"
    layer: Any = model.get_submodule(name)
    stored = model.state_dict()[f"{name}.weight"]
    assert not torch.equal(layer.weight, stored)
    wanted = quantize_matrix(stored.numpy(), limit=63).dequantize()
    np.testing.assert_array_equal(layer.weight.detach().numpy(), wanted)
    twin: Any = copy.deepcopy(model).get_submodule(name)
    assert torch.equal(twin.weight, layer.weight)


def test_each_shared_weight_is_rounded_once_until_it_changes() -> None:
    model = model_of(tiny())
    layer: Any = model.get_submodule("encoder.ffns.0.down")
    with torch.no_grad():
        model.forward_packed(IDS, PACKING)
        grid = layer.grid
        model.forward_packed(IDS, PACKING)
        assert layer.grid is grid
        model.state_dict()["encoder.ffns.0.down.weight"].mul_(2.0)
        assert layer.weight is not grid[1]
        torch.testing.assert_close(layer.weight, 2 * grid[1])


def plain_of(model: AlbertModel) -> AlbertModel:
    plain = AlbertModel(model.config.replace(litebert={"quantization": None})).eval()
    names = plain.state_dict()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if k in names})
    return plain


@pytest.mark.parametrize("weights", ["pairs", "int7", "int8"])
def test_a_quantized_model_is_near_the_plain_one(weights: str) -> None:
    model = model_of(tiny(weights=weights))
    plain = plain_of(model)
    with torch.no_grad():
        a = plain.forward_packed(IDS, PACKING).last_hidden_state
        b = model.forward_packed(IDS, PACKING).last_hidden_state
    assert not torch.equal(a, b)
    assert torch.nn.functional.cosine_similarity(a, b, dim=1).min() > 0.99


def test_gradients_pass_the_rounding() -> None:
    """Straight through: the gradient is that of a plain model whose weights are the rounded ones."""
    model = model_of(tiny(activations="none")).train()
    plain = plain_of(model).train()
    rounded = {f"{name}.weight": layer.weight for name, layer in quantized_layers(model).items()}
    plain.load_state_dict(plain.state_dict() | rounded)
    for each in (model, plain):
        each.forward_packed(IDS, PACKING).last_hidden_state.square().sum().backward()
    for (name, a), (_, b) in zip(model.named_parameters(), plain.named_parameters(), strict=True):
        if "pooler" not in name:
            torch.testing.assert_close(a.grad, b.grad, atol=1e-5, rtol=1e-4)


def test_activations_outside_a_static_range_get_no_gradient() -> None:
    x = torch.tensor([-3.0, 0.5, 3.0], requires_grad=True)
    y = round_activations(x, torch.tensor(-1.0), torch.tensor(1.0))
    assert y.tolist() == pytest.approx([-1.0, 0.5, 1.0], abs=0.01)
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 1.0, 0.0]
    z = torch.tensor([[-3.0, 3.0]], requires_grad=True)
    round_activations(z).sum().backward()
    assert z.grad is not None and z.grad.tolist() == [[1.0, 1.0]]


def test_what_a_row_gives_hardly_depends_on_the_others() -> None:
    torch.manual_seed(0)
    small, large = torch.randn(3, 8), 1000 * torch.randn(2, 8)
    alone, beside = round_activations(small), round_activations(torch.cat([small, large]))[:3]
    assert (alone - beside).abs().max() < 0.05 and (alone - small).abs().max() < 0.05


def test_centers_change_the_grid_and_not_the_numbers() -> None:
    model = model_of(tiny())
    with torch.no_grad():
        first = model.forward_packed(IDS, PACKING).last_hidden_state
        model.encoder.ffns[0].up_center.fill_(0.25)  # pyright: ignore
        second = model.forward_packed(IDS, PACKING).last_hidden_state
    assert not torch.equal(first, second)
    torch.testing.assert_close(first, second, atol=0.1, rtol=0)


def test_static_ranges_belong_to_depths() -> None:
    model = model_of(tiny(activations="static", centers=False))
    ranges = model.encoder.activation_ranges
    assert ranges is not None and "encoder.activation_ranges" in model.state_dict()
    with torch.no_grad():
        exact = plain_of(model).forward_packed(IDS, PACKING).last_hidden_state
        calibrate(model, [(IDS, PACKING)])
        near = (exact - model.forward_packed(IDS, PACKING).last_hidden_state).abs().mean()
        ranges[2] *= 0.01  # too narrow in the last depth
        cut = model.forward_packed(IDS, PACKING).last_hidden_state
    assert 0 < near < (exact - cut).abs().mean()


def test_int4_is_for_the_token_table_alone() -> None:
    model = model_of(tiny(embeddings="int4", embedding_group=4))
    for name, levels in (("embeddings.token", 15), ("embeddings.position", 255)):
        table: Any = model.get_submodule(name)
        rows = table.weight.detach()[:, :4]
        counts = [len(row.unique()) for row in rows / rows.abs().amax(1, keepdim=True)]
        assert max(counts) <= levels
    token = model.embeddings.token.weight.detach()[:, :4]
    steps = token / (token.abs().amax(1, keepdim=True) / 7)
    torch.testing.assert_close(steps, steps.round(), atol=1e-4, rtol=0)


def test_training_works_with_a_head_and_empty_inputs() -> None:
    torch.manual_seed(0)
    model = AlbertWithHead(tiny().replace(classifier_dropout_prob=0.0), "sequence").train()
    attach_rounding(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses: list[float] = []
    for _ in range(5):
        loss: Any = model.forward_packed(IDS, PACKING, labels=torch.tensor([0, 1])).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert round_activations(torch.empty(0, 3)).shape == (0, 3)
