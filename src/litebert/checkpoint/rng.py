"""Random number states of Python, NumPy and torch as tensors and JSON, and back."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from litebert.errors import CheckpointError


def capture_rng() -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the states of all global generators of this process: (tensors, JSON scalars)."""
    version, keys, gauss = random.getstate()
    kind, numpy_keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    tensors = {
        "python": torch.tensor(keys, dtype=torch.int64),
        "numpy": torch.from_numpy(np.asarray(numpy_keys).astype(np.int64)),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        for index, state in enumerate(torch.cuda.get_rng_state_all()):
            tensors[f"cuda.{index}"] = state
    scalars = {
        "python": [version, gauss],
        "numpy": [str(kind), int(position), int(has_gauss), float(cached)],
    }
    return tensors, scalars


def restore_rng(tensors: Mapping[str, Tensor], scalars: Mapping[str, Any]) -> None:
    """Set all global generators to states that `capture_rng` returned.

    CUDA states are restored for the devices that exist here.

    Raises:
        CheckpointError: a state is missing or malformed.
    """
    try:
        version, gauss = scalars["python"]
        random.setstate((version, tuple(int(key) for key in tensors["python"].tolist()), gauss))
        kind, position, has_gauss, cached = scalars["numpy"]
        keys = tensors["numpy"].numpy().astype(np.uint32)
        np.random.set_state((kind, keys, position, has_gauss, cached))
        torch.set_rng_state(tensors["torch"])
        if torch.cuda.is_available():
            for index in range(torch.cuda.device_count()):
                if f"cuda.{index}" in tensors:
                    torch.cuda.set_rng_state(tensors[f"cuda.{index}"], index)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"the random number states cannot be restored: {error}") from error
