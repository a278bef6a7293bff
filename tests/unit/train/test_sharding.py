from __future__ import annotations

import pytest
import torch
from torch import distributed, nn

from litebert.errors import RankLostError, SettingsError
from litebert.train.precision import Precision
from litebert.train.ranks import ALONE, Ranks, naming_lost_ranks
from litebert.train.settings import TrainSettings
from litebert.train.sharding import (
    Replicas,
    clip_gradients,
    load_whole,
    place_weights,
    saved_tensor,
    split_like,
    whole_tensor,
)

CPU = torch.device("cpu")
FP32 = Precision("fp32", "cpu")


def place(monkeypatch: pytest.MonkeyPatch, model: nn.Module, backend: str, precision: Precision):
    monkeypatch.setattr(distributed, "get_backend", lambda group: backend)
    return place_weights(model, TrainSettings(shard_weights=True), Ranks(1, 2), CPU, precision)


@pytest.mark.parametrize(("is_asked", "ranks"), [(False, Ranks(1, 2)), (True, ALONE)])
def test_nothing_is_split_unasked_or_alone(is_asked: bool, ranks: Ranks) -> None:
    """So the setting may stay when a run goes on in one process."""
    settings = TrainSettings(shard_weights=is_asked)
    model = nn.Linear(2, 1)
    found = place_weights(model, settings, ranks, CPU, FP32)
    assert type(found) is Replicas
    with found.whole(), found.exchanging():
        found.gather()
    found.join()
    assert type(model.weight) is nn.Parameter


def test_replicas_sum_gradients_as_the_ranks_do() -> None:
    assert Replicas(nn.Linear(2, 1), ALONE).sum_gradients([1.5, 2.0]) == [1.5, 2.0]


def test_what_cannot_be_split_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="device 'cpu' and processes connected by nccl"):
        place(monkeypatch, nn.Linear(2, 1), "nccl", FP32)
    with pytest.raises(SettingsError, match="allowed are 'bf16' and 'fp32'"):
        place(monkeypatch, nn.Linear(2, 1), "gloo", Precision("fp16", "cpu"))
    model = nn.Linear(2, 1)
    model.register_parameter("scale", nn.Parameter(torch.tensor(1.0)))
    with pytest.raises(SettingsError, match="scale: a weight of no dimension cannot be split"):
        place(monkeypatch, model, "gloo", FP32)


def test_whole_tensors_stay_as_they_are() -> None:
    tensor, model = torch.ones(2, 3), nn.Linear(3, 2)
    assert whole_tensor(tensor) is tensor and saved_tensor(tensor) is tensor
    assert split_like(tensor, None) is tensor and split_like(tensor, model.weight) is tensor
    load_whole(model, {"weight": tensor, "bias": torch.zeros(2)})
    assert torch.equal(model.weight, tensor)
    with pytest.raises(RuntimeError, match="Missing key"):
        load_whole(model, {"weight": tensor})


def test_clipping_returns_the_norm_before() -> None:
    model = nn.Linear(1, 1)
    model.weight.grad, model.bias.grad = torch.tensor([[3.0]]), torch.tensor([4.0])
    assert clip_gradients(model, 1.0) == pytest.approx(5.0)
    assert model.bias.grad.item() == pytest.approx(0.8, rel=1e-5)


def test_a_failed_exchange_names_the_rank_but_lack_of_memory_is_none() -> None:
    with (
        pytest.raises(RankLostError, match=r"rank 3 of 4 cannot reach the others \(gone\)"),
        naming_lost_ranks(3, 4),
    ):
        raise RuntimeError("gone\nsecond line")
    with pytest.raises(torch.OutOfMemoryError), naming_lost_ranks(3, 4):
        raise torch.OutOfMemoryError("CUDA out of memory")
