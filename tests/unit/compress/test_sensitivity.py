"""What the vector of a text feels of its embeddings."""

from __future__ import annotations

import pytest
import torch

from litebert.compress.sensitivity import PROJECTIONS, vector_sensitivity
from litebert.errors import DataError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig


def encoder(width: int = 12) -> AlbertWithHead:
    torch.manual_seed(0)
    config = AlbertConfig.from_dict(
        {
            "vocab_size": 30, "embedding_size": width, "hidden_size": width, "num_hidden_layers": 2,
            "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 20,
            "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
            "litebert": {"project_embeddings": False},
        }
    )  # fmt: skip
    model = AlbertWithHead(config, "embedding").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


TEXTS = [torch.tensor([2, 5, 9, 3]), torch.tensor([2, 7, 3]), torch.tensor([2, 11, 12, 13, 3])]


def test_it_is_what_small_changes_of_the_input_do_to_the_vectors() -> None:
    """`g^T g` of random projections is, on average, the squared change of the vector."""
    model = encoder()
    found = vector_sensitivity(model, TEXTS * 40, seed=1)
    assert found.dtype == torch.float64 and float(found.diagonal().mean()) == pytest.approx(1.0)
    torch.testing.assert_close(found, found.T)
    assert float(torch.linalg.eigvalsh(found)[0]) > -1e-9

    def vector(ids: torch.Tensor, change: torch.Tensor | None, place: int) -> torch.Tensor:
        def add(_m: object, _i: object, output: torch.Tensor) -> torch.Tensor:
            output = output.clone()
            if change is not None:
                output.view(-1, 12)[place] += change
            return output

        hook = model.model.embeddings.register_forward_hook(add)
        with torch.no_grad():
            hidden = model(ids[None], torch.ones_like(ids)[None]).last_hidden_state[0]
        hook.remove()
        return torch.nn.functional.normalize(hidden.mean(0), dim=0).double()

    slow = torch.zeros(12, 12, dtype=torch.float64)
    step = 1e-2
    for ids in TEXTS:
        for place in range(len(ids)):
            rows = [
                (vector(ids, step * unit, place) - vector(ids, -step * unit, place)) / (2 * step)
                for unit in torch.eye(12)
            ]
            jacobian = torch.stack(rows)  # [D, H]
            slow += jacobian @ jacobian.T
    slow /= slow.diagonal().mean()
    assert float((found - slow).norm() / slow.norm()) < 0.2, PROJECTIONS


def test_the_model_and_random_numbers_are_as_before() -> None:
    model = encoder()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    first, second = vector_sensitivity(model, TEXTS), vector_sensitivity(model, TEXTS)
    assert torch.equal(first, second) and torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_no_texts_and_broken_weights_are_refused() -> None:
    model = encoder()
    with pytest.raises(DataError, match="no texts to measure by"):
        vector_sensitivity(model, [])
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    with pytest.raises(DataError, match="feel nothing"):
        vector_sensitivity(model, TEXTS)
