from __future__ import annotations

import pytest

from litebert.train.lr_scaling import peak_learning_rate
from litebert.train.settings import TrainSettings

PUBLISHED = {
    512: 5 / (2**3.0 * 1e3),
    1024: 5 / (2**2.5 * 1e3),
    2048: 5 / (2**2.0 * 1e3),
    4096: 5 / (2**1.5 * 1e3),
    8192: 5 / (2**1.0 * 1e3),
    16384: 5 / (2**0.5 * 1e3),
    32768: 5 / (2**0.0 * 1e3),
}
"""Peak rates of LAMB's table for BERT, from batch 512 to 32k (You et al. 2020)."""

ALBERT_RTOL = 0.005
"""0.00176 is 5 / (2^1.5 * 1000) = 0.001768 cut after three digits."""


@pytest.mark.parametrize(("batch_size", "rate"), PUBLISHED.items())
def test_the_paper_s_rate_reproduces_the_table_of_lamb(batch_size: int, rate: float) -> None:
    settings = TrainSettings(learning_rate=0.00176, lr_scaling="sqrt", batch_size=batch_size)
    assert peak_learning_rate(settings) == pytest.approx(rate, rel=ALBERT_RTOL)


def test_the_three_rules() -> None:
    kept = {"learning_rate": 0.01, "lr_reference_batch_size": 64}
    rates = [
        peak_learning_rate(TrainSettings(**kept, batch_size=256, lr_scaling=rule))
        for rule in ("none", "sqrt", "linear")
    ]
    assert rates == pytest.approx([0.01, 0.02, 0.04])
    at_reference = TrainSettings(**kept, batch_size=64, lr_scaling="linear")
    assert peak_learning_rate(at_reference) == pytest.approx(0.01)


def test_a_ramp_asks_for_each_size() -> None:
    settings = TrainSettings(
        learning_rate=0.01, batch_size=256, lr_reference_batch_size=256, lr_scaling="sqrt"
    )
    assert peak_learning_rate(settings, 64) == pytest.approx(0.005)
