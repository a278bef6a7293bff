"""What the settings ask of a model beside its weights: recomputing, compiling, decay and number of depths."""

from __future__ import annotations

from typing import Any

from torch import nn

from litebert.errors import SettingsError
from litebert.model.encoder import Encoder
from litebert.train.settings import TrainSettings

__all__ = ["set_depth", "set_options"]


def set_options(model: nn.Module, settings: TrainSettings) -> None:
    """Set what holds for the whole run.

    Raises:
        SettingsError: the model cannot do what is asked.
    """
    _call(model, "set_checkpointing", settings.gradient_checkpointing, "gradient_checkpointing")
    encoders = [part for part in model.modules() if isinstance(part, Encoder)]
    for encoder in encoders:
        encoder.set_depth_decay(settings.depth_decay)
    if settings.depth_decay is not None and not encoders:
        raise SettingsError(f"{type(model).__name__} has no depths; leave 'depth_decay' unset")
    if settings.compile:
        _require(model, "compile_block", "compile")()
    if settings.shallow_start is not None:
        set_depth(model, settings.shallow_start.depth)  # refused now rather than at the first step
    else:
        set_depth(model, None)


def set_depth(model: nn.Module, depth: int | None) -> None:
    """Let only the first `depth` depths run; None: all.

    Raises:
        SettingsError: the model has no such number of depths, or other weights in the others.
    """
    _call(model, "set_active_depth", depth, "shallow_start")


def _call(model: nn.Module, method: str, value: Any, setting: str) -> None:
    """Call `method` if the model has it; without it only an empty value is right."""
    if hasattr(model, method):
        getattr(model, method)(value)
    elif value:
        _require(model, method, setting)


def _require(model: nn.Module, method: str, setting: str) -> Any:
    found = getattr(model, method, None)
    if found is None:
        raise SettingsError(f"{type(model).__name__} has no {method}(); leave {setting!r} unset")
    return found
