from __future__ import annotations

import time
from typing import Any

import pytest
import torch

import litebert.train.precision as precision_module
from litebert.errors import SettingsError
from litebert.train.precision import choose_precision, measure_matmul, pick


@pytest.mark.parametrize(
    ("speeds", "name"),
    [
        ({"fp32": 100.0, "bf16": 0.7, "fp16": 0.6}, "fp32"),
        ({"fp32": 100.0, "bf16": 110.0, "fp16": 90.0}, "fp32"),
        ({"fp32": 100.0, "bf16": 300.0, "fp16": 310.0}, "bf16"),
        ({"fp32": 100.0, "bf16": 60.0, "fp16": 400.0}, "fp16"),
        ({"fp32": 100.0, "bf16": 130.0, "fp16": 400.0}, "fp16"),
        ({"fp32": 100.0}, "fp32"),
    ],
)
def test_choice_follows_the_measurement(speeds: dict[str, float], name: str) -> None:
    chosen, reason = pick(speeds)
    assert chosen == name
    assert reason


def test_auto_measures_within_a_second_and_tells() -> None:
    measure_matmul.cache_clear()
    start = time.monotonic()
    choice = choose_precision("auto", "cpu")
    assert time.monotonic() - start < 3, "about a second on an idle machine"
    assert choice.gflops["fp32"] > 0
    assert choice.name == pick(choice.gflops)[0]
    assert choose_precision("auto", torch.device("cpu")) == choice


def test_type_that_fails_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(device: torch.device, dtype: torch.dtype, size: int) -> float:
        if dtype != torch.float32:
            raise RuntimeError("not implemented for this type")
        return 1.0

    monkeypatch.setattr(precision_module, "_time_matmul", measure)
    measure_matmul.cache_clear()
    assert choose_precision().reason == "no shorter type is supported here"
    measure_matmul.cache_clear()


def test_by_name() -> None:
    layer: Any = torch.nn.Linear(4, 4)
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        choice = choose_precision(name)
        with choice.autocast():
            assert layer(torch.ones(1, 4)).dtype == dtype
        assert choice.make_scaler() is None
    assert choose_precision("fp16").make_scaler() is not None
    with pytest.raises(SettingsError, match="allowed: auto, fp32, bf16, fp16"):
        choose_precision("int8")
