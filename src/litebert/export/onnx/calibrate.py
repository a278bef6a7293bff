"""How large the inputs of each projection get, channel by channel, for the balance of int8 files.

A trained encoder has a few channels that are ten times larger than the rest, whatever the text (an
input of the feed-forward of a real model: one of 768 at 25, the others near 1). Random pieces show
them as well as real text does.
Source: Xiao et al. 2023, SmoothQuant, equation 4, with the strength below.
Differs from: one factor serves all depths that share the weight; it is applied to the inputs instead
of the LayerNorm before them, whose result the residual needs as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litebert.export.onnx.attention import joined
from litebert.export.onnx.parts import ModelParts
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.layers import Attention
from litebert.model.packing import Packing

__all__ = ["balance_factors"]

Floats = NDArray[np.float32]

STRENGTH: Final = 0.7
"""0 leaves all to the activations, 1 to the weights; 0.5 to 0.8 were tried."""
SEQUENCES: Final = 4
LENGTH: Final = 64
"""Pieces of each random sequence, or as many as the model has positions."""
SEED: Final = 20
LEAST: Final = 1e-5
"""Smallest size of a channel, relative to the largest."""


def balance_factors(model: AlbertModel | AlbertWithHead, parts: ModelParts) -> dict[str, Floats]:
    """Return the factors of the inputs of query, key, value and of the feed-forward, by name.

    Args:
        model: the torch model, in evaluation mode.
        parts: its arrays.
    """
    encoder = model.model if isinstance(model, AlbertWithHead) else model
    sizes: dict[str, Tensor] = {}
    undo: list[Callable[[], None]] = []
    for number, module in enumerate(encoder.encoder.attentions):
        undo.append(_watch(module, "project", f"encoder.attentions.{number}.joined", sizes))
    for number, module in enumerate(encoder.encoder.ffns):
        undo.append(_watch(module, "_project", f"encoder.ffns.{number}.up", sizes))
    try:
        _run(encoder)
    finally:
        for restore in undo:
            restore()
    weights = {
        name: joined(parts, int(name.split(".")[2]))[0]
        if name.endswith("joined")
        else parts.weight(f"{name}.weight")
        for name in sizes
    }
    factors = {name: _factors(size.numpy(), weights[name]) for name, size in sizes.items()}
    gates = {
        name.replace(".up", ".gate"): value
        for name, value in factors.items()
        if name.endswith(".up") and parts.config.litebert.ffn == "geglu"
    }
    return factors | gates


def _watch(module: Any, method: str, name: str, sizes: dict[str, Tensor]) -> Callable[[], None]:
    """Note the largest inputs of a method of a module; return what undoes that."""
    original = getattr(module, method)

    def noted(rows: Tensor) -> None:
        largest = rows.detach().abs().flatten(0, -2).amax(0)
        sizes[name] = torch.maximum(sizes[name], largest) if name in sizes else largest

    def project(hidden: Tensor, *rest: Any, **named: Any) -> Tensor:
        noted(hidden)
        return original(hidden, *rest, **named)

    def project_one(part: str, layer: Any, inputs: Tensor, *rest: Any) -> Tensor:
        if part == "up":
            noted(inputs)
        return original(part, layer, inputs, *rest)

    setattr(module, method, project if isinstance(module, Attention) else project_one)
    return partial(delattr, module, method)


def _run(encoder: AlbertModel) -> None:
    config = encoder.config
    generator = np.random.default_rng(SEED)
    length = min(LENGTH, config.max_position_embeddings)
    ids = generator.integers(0, config.vocab_size, SEQUENCES * length)
    types = np.zeros(SEQUENCES * length, np.int64)
    if config.type_vocab_size > 1:
        types[: length // 2] = 1
    packing = Packing.from_lengths([length] * SEQUENCES)
    with torch.no_grad():
        encoder.forward_packed(torch.from_numpy(ids), packing, torch.from_numpy(types))


def _factors(sizes: Floats, weight: Floats) -> Floats:
    inputs = np.maximum(sizes.astype(np.float64), LEAST * max(float(sizes.max()), 1e-30))
    columns = np.abs(weight).max(axis=0).astype(np.float64)
    columns = np.maximum(columns, LEAST * max(float(columns.max()), 1e-30))
    factors = inputs**STRENGTH / columns ** (1.0 - STRENGTH)
    return (factors / np.exp(np.log(factors).mean())).astype(np.float32)
