from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed, nn

sys.path.insert(0, str(Path(__file__).parent))
from thread_ranks import on_ranks

import litebert.train.ranks as ranks_module
from litebert.checkpoint.fs import StorageError
from litebert.checkpoint.state import StateStore
from litebert.errors import RankLostError, SettingsError
from litebert.train.device import rank_environment
from litebert.train.ranks import ALONE, Ranks, join_ranks
from litebert.train.shared_store import SharedStore
from litebert.train.source import Part

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")


def launched(monkeypatch: pytest.MonkeyPatch, *values: str | None) -> None:
    for name, value in zip(NAMES, values, strict=True):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ((None, None, None), (0, 1, 0)),
        (("", "", ""), (0, 1, 0)),
        (("3", "4", "1"), (3, 4, 1)),
        (("0", "2", None), (0, 2, 0)),
    ],
)
def test_the_place_among_the_ranks(
    monkeypatch: pytest.MonkeyPatch, values: Any, found: tuple[int, int, int]
) -> None:
    launched(monkeypatch, *values)
    assert rank_environment() == found


@pytest.mark.parametrize(
    "values",
    [("x", "2", "0"), ("0", None, "0"), ("-1", "2", "0"), ("0", "2", "1.5"), (None, "2", None)],
)
def test_a_place_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, values: Any) -> None:
    launched(monkeypatch, *values)
    with pytest.raises(SettingsError, match="must be whole numbers, as torchrun sets them"):
        rank_environment()


def test_a_rank_outside_of_the_world_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, "2", "2", "0")
    with pytest.raises(SettingsError, match="RANK is 2 with WORLD_SIZE 2; allowed: 0 to 1"):
        rank_environment()


def test_one_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, "0", "1", "0")
    with join_ranks(10) as ranks:
        assert (ranks.rank, ranks.world, ranks.is_first) == (0, 1, True)
        assert ranks.part == Part(0, 1)
    assert not distributed.is_initialized()


def test_alone_everything_is_its_own_sum() -> None:
    model = nn.Linear(2, 1)
    assert ALONE.sum_numbers({"a": 2}) == {"a": 2}
    assert ALONE.sum_gradients(model, [1.0, 2.0]) == [1.0, 2.0]
    assert model.weight.grad is None and ALONE.bytes_reduced == 0
    assert ALONE.share_state(None) is None
    state = {"w": torch.ones(1)}, {"step": 1}
    assert ALONE.share_state(state) is state


def test_numbers_are_summed_by_name_and_exactly() -> None:
    large = 2**40 + 1

    def do(ranks: Ranks) -> dict[str, float]:
        numbers = {"tokens": large, "loss": 0.25 * ranks.rank}
        return ranks.sum_numbers(numbers if ranks.rank else dict(reversed(numbers.items())))

    assert on_ranks(3, do) == [{"loss": 0.75, "tokens": 3 * large}] * 3


def test_gradients_are_summed_in_one_exchange() -> None:
    def do(ranks: Ranks) -> tuple[list[float], list[torch.Tensor], int]:
        model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
        model[1].bias.requires_grad_(False)
        if ranks.rank == 0:  # the other has no examples, so no gradients
            for p in model.parameters():
                p.grad = torch.full_like(p, 2.0) if p.requires_grad else None
        extra = ranks.sum_gradients(model, [1.0, float(ranks.rank)])
        first = [p.grad for p in model.parameters() if p.grad is not None]
        buffer = ranks._buffer
        for p in model.parameters():
            p.grad = None
        ranks.sum_gradients(model, [0.0, 0.0])
        assert ranks._buffer is buffer, "the buffer is used again"
        return extra, first, ranks.bytes_reduced

    for extra, gradients, size in on_ranks(2, do):
        assert extra == [2.0, 1.0]
        assert [g.shape for g in gradients] == [(2, 3), (2,), (1, 2)]
        assert all(bool((g == 2).all()) for g in gradients)
        assert size == 4 * (6 + 2 + 2 + 2)


def test_a_state_is_shared_bit_for_bit() -> None:
    tensors = {"w": torch.randn(3, 4), "n": torch.tensor([1, 2]), "half": torch.ones(2).bfloat16()}

    def do(ranks: Ranks) -> Any:
        own = (tensors, {"step": 7, "name": "é"}) if ranks.is_first else None
        found = ranks.share_state(own, is_patient=True)
        return found, ranks.share_state(None)

    for (shared, scalars), nothing in on_ranks(2, do):
        assert nothing is None
        assert scalars == {"step": 7, "name": "é"}
        assert all(torch.equal(shared[name], tensor) for name, tensor in tensors.items())
        assert shared["half"].dtype == torch.bfloat16


def test_the_first_rank_saves_and_all_read(tmp_path: Path) -> None:
    def do(ranks: Ranks) -> Any:
        own = StateStore(tmp_path) if ranks.is_first else None
        store = SharedStore(own, ranks)
        assert store.load_latest() is None
        for step in (1, 2, 3):
            folder = store.save(step, {"w": torch.full((2,), float(step))}, {"step": step}, keep=9)
        store.discard_after(2)
        steps, latest, first = store.steps(), store.load_latest(), store.load(1)
        assert latest is not None
        return folder, store.folder, steps, latest.scalars, first.tensors["w"].tolist()

    first, second = on_ranks(2, do)
    assert first[:2] == (tmp_path / "step-00000003", tmp_path)
    assert second[:2] == (None, None)
    assert first[2:] == second[2:] == ([1, 2], {"step": 2}, [1.0, 1.0])


def test_a_disk_that_refuses_is_known_to_all(tmp_path: Path) -> None:
    (tmp_path / "states").write_text("a file where the folder should be")

    def do(ranks: Ranks) -> tuple[str, int]:
        store = SharedStore(StateStore(tmp_path / "states") if ranks.is_first else None, ranks)
        with pytest.raises(StorageError) as caught:
            store.save(0, {"w": torch.ones(1)}, {})
        return str(caught.value), caught.value.errno

    first, second = on_ranks(2, do)
    assert first[1] == second[1]
    assert "the first rank could not save the state" in second[0]


def test_a_rank_that_answers_no_more_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise RuntimeError("Connection closed by peer [127.0.0.1]:1234\nmore")

    monkeypatch.setattr(distributed, "all_reduce", fail)
    monkeypatch.setattr(distributed, "broadcast", fail)
    monkeypatch.setattr(ranks_module, "_device_of", lambda group: torch.device("cpu"))
    ranks = Ranks(1, 2)
    match = r"rank 1 of 2 cannot reach the others \(Connection closed.*\); .* --resume"
    for exchange in (
        lambda: ranks.sum_numbers({"a": 1}),
        lambda: ranks.sum_gradients(nn.Linear(1, 1), []),
        lambda: ranks.share_state(None),
    ):
        with pytest.raises(RankLostError, match=match):
            exchange()


def test_others_that_do_not_start_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, "1", "2", "1")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "1")
    monkeypatch.setattr(ranks_module, "_START_SECONDS", 1)
    with pytest.raises(RankLostError, match="rank 1 of 2 cannot meet the others"), join_ranks(1):
        raise AssertionError("nobody is there")


def test_one_process_for_each_cuda_device(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch, "3", "4", "3")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with (
        pytest.raises(SettingsError, match=r"rank 3 is process 3 .* which has 2 CUDA"),
        join_ranks(1),
    ):
        raise AssertionError("there is no such device")
