"""What callers pass to a model, checked by kind before anything is computed from it."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from litebert.errors import DataError, SettingsError
from litebert.model.config import AlbertConfig

__all__ = ["require_config", "require_integers", "require_tensor"]

_INDEX_TYPES: Final = (torch.int64, torch.int32)


def require_tensor(name: str, value: object) -> None:
    """Refuse lists, arrays and None where a tensor belongs.

    Raises:
        DataError: not a tensor.
    """
    if not isinstance(value, Tensor):
        raise DataError(
            f"{name} must be a torch tensor, got {type(value).__name__}; "
            "make one with torch.tensor(...)"
        )


def require_integers(name: str, value: object) -> None:
    """Refuse what cannot index a table: fractions would be cut off, truth values are a mask.

    Raises:
        DataError: not a tensor, or not of int64 or int32.
    """
    require_tensor(name, value)
    if isinstance(value, Tensor) and value.dtype not in _INDEX_TYPES:
        raise DataError(
            f"{name} has the type {value.dtype}, allowed are torch.int64 and torch.int32; "
            "if these are ids, convert them with .long()"
        )


def require_config(value: object) -> None:
    """Refuse a dict or a name where a configuration belongs.

    Raises:
        SettingsError: not an `AlbertConfig`.
    """
    if not isinstance(value, AlbertConfig):
        raise SettingsError(
            f"config must be an AlbertConfig, got {type(value).__name__}; make one with "
            "AlbertConfig.from_dict(...), AlbertConfig.load(folder) or preset(name)"
        )
