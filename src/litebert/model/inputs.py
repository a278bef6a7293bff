"""What callers pass to a model, checked by kind before anything is computed from it."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from litebert.errors import DataError, SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.packing import Packing

__all__ = ["packed_positions", "require_config", "require_integers", "require_tensor"]

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


def packed_positions(flat: Tensor, packing: Packing) -> Tensor:
    """Flat indices of the padded batch -> packed indices.

    Raises:
        DataError: an index outside the batch, or on padding.
    """
    batch, width = packing.padded_shape or (packing.num_sequences, packing.max_length)
    if flat.numel() and not 0 <= int(flat.min()) <= int(flat.max()) < batch * width:
        raise DataError(
            f"masked_positions go from {int(flat.min())} to {int(flat.max())}, allowed are 0 to "
            f"{batch * width - 1} (row * S + column)"
        )
    if packing.indices is None:
        return flat
    inverse = torch.full((batch * width,), -1, dtype=torch.int64, device=flat.device)
    inverse[packing.indices] = torch.arange(packing.num_tokens, device=flat.device)
    packed = inverse[flat]
    if bool((packed < 0).any()):
        raise DataError("masked_positions hold a padding token; mask real tokens only")
    return packed
