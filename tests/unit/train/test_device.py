from __future__ import annotations

import pytest
import torch

from litebert.errors import SettingsError
from litebert.train.device import choose_device, torch_threads


def test_device_by_name_and_by_itself() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device().type in ("cpu", "cuda", "mps")
    for wrong in ("gpu", "cuda:99", "tpu9"):
        with pytest.raises(SettingsError, match="allowed: auto, cpu, cuda"):
            choose_device(wrong)


def test_torch_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with torch_threads(1) as threads:
        assert threads == torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
