from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from litebert.errors import SettingsError
from litebert.train.options import set_depth, set_options
from litebert.train.settings import ShallowStart, TrainSettings


class Able(nn.Module):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, Any]] = []

    def set_checkpointing(self, value: bool) -> None:
        self.asked.append(("checkpointing", value))

    def compile_block(self) -> None:
        self.asked.append(("compile", True))

    def set_active_depth(self, depth: int | None) -> None:
        self.asked.append(("depth", depth))


def test_a_model_is_asked_for_what_is_set() -> None:
    model = Able()
    set_options(model, TrainSettings())
    assert model.asked == [("checkpointing", False), ("depth", None)]
    model = Able()
    start = ShallowStart(depth=2)
    set_options(
        model, TrainSettings(gradient_checkpointing=True, compile=True, shallow_start=start)
    )
    assert model.asked == [("checkpointing", True), ("compile", True), ("depth", 2)]
    set_depth(model, None)
    assert model.asked[-1] == ("depth", None)


def test_a_model_that_cannot_is_fine_as_long_as_nothing_is_asked() -> None:
    set_options(nn.Linear(1, 1), TrainSettings())
    set_depth(nn.Linear(1, 1), None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (TrainSettings(gradient_checkpointing=True), "leave 'gradient_checkpointing' unset"),
        (TrainSettings(compile=True), "no compile_block"),
        (TrainSettings(shallow_start=ShallowStart(depth=1)), "leave 'shallow_start' unset"),
    ],
)
def test_what_a_model_cannot_do_is_refused(settings: TrainSettings, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        set_options(nn.Linear(1, 1), settings)
