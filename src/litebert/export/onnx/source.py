"""A model folder as arrays, and the torch model that the result is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from litebert.checkpoint.folder import load_encoder, load_model, saved_head
from litebert.checkpoint.int8 import QuantizedMatrix
from litebert.checkpoint.int8_pairs import can_saturate
from litebert.checkpoint.quantized import read_quantized
from litebert.errors import ExportError
from litebert.export.onnx.attention import query_scale
from litebert.export.onnx.calibrate import balance_factors
from litebert.export.onnx.floats import FloatPrecision
from litebert.export.onnx.integers import IntegerPrecision
from litebert.export.onnx.parts import ModelParts, Precision
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.resharing import empty_like

__all__ = ["PRECISIONS", "Source", "load_source", "make_precision", "model_parts"]

TorchModel = AlbertModel | AlbertWithHead

Floats = NDArray[np.float32]
CENTER: Final = "_center"
"""How the buffers end that hold centers."""

PRECISIONS = ("fp32", "fp16", "int8")
"""Number formats of the files."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is exported.

    Attributes:
        folder: where it was read; None for a model in memory.
        model: the torch model, computing in floating point.
        parts: its arrays.
        integers: weights that the folder stores as integers, by their name in our state dict.
        centers: what a quantized folder takes off the inputs of projections, by their buffers' names.
    """

    folder: Path | None
    model: TorchModel
    parts: ModelParts
    integers: Mapping[str, QuantizedMatrix]
    centers: Mapping[str, Floats]

    @classmethod
    def of(cls, model: TorchModel) -> Source:
        """Return a model in memory as a source."""
        return cls(None, model, model_parts(model), {}, {})


def load_source(folder: Path) -> Source:
    """Load the model of a folder with the head it was saved with, or as an encoder.

    A quantized folder gives the numbers that its integers stand for, and the integers.

    Raises:
        CheckpointError: any fault of the folder.
    """
    head = saved_head(folder)
    model: TorchModel = load_encoder(folder) if head is None else load_model(folder)
    integers: dict[str, QuantizedMatrix] = {}
    centers: dict[str, Floats] = {}
    if model.config.litebert.quantization is not None:
        integers = read_quantized(folder)
        weights = model_parts(model).weights
        centers = {name: value for name, value in weights.items() if name.endswith(CENTER)}
        model = _plain(model)
    return Source(folder, model, model_parts(model), integers, centers)


def model_parts(model: TorchModel) -> ModelParts:
    """Return a torch model as arrays of float32."""
    head = model.head if isinstance(model, AlbertWithHead) else None
    encoder = model.model if isinstance(model, AlbertWithHead) else model
    weights = {
        name.removeprefix("model.") if head is not None else name: np.ascontiguousarray(
            tensor.detach().float().cpu().numpy()
        )
        for name, tensor in model.state_dict().items()
    }
    return ModelParts(model.config, head, weights, encoder.pooler is not None)


def make_precision(name: str, source: Source) -> Precision:
    """Return how weights are stored for a number format.

    Raises:
        ExportError: no such format.
    """
    parts = source.parts
    if name == "fp32" or name == "fp16":
        return FloatPrecision(name)
    if name != "int8":
        raise ExportError(f"precision {name!r:.40} is unknown; known: {', '.join(PRECISIONS)}")
    products = {"embeddings.token"} if parts.head in ("mlm", "pretraining") else set[str]()
    if parts.config.litebert.has_relative:
        products.add("encoder.relative.table")
    given = _given(source)
    balance = {
        key: value
        for key, value in balance_factors(source.model, parts).items()
        if key not in given
    }
    return IntegerPrecision(balance, given, _centers(source, given), frozenset(products))


def _plain(model: TorchModel) -> TorchModel:
    """The same numbers without the rounding of activations."""
    config = model.config.replace(litebert={"quantization": None})
    plain = empty_like(model, config)
    wanted = plain.state_dict()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if k in wanted})
    return plain.eval()


def _centers(source: Source, given: Mapping[str, QuantizedMatrix]) -> dict[str, Floats]:
    """Centers by the projection whose inputs they belong to, where its stored integers are used."""
    found: dict[str, Floats] = {}
    for buffer, center in source.centers.items():
        block, _, site = buffer.removesuffix(CENTER).rpartition(".")
        names = {"qkv": ("joined",), "up": ("up", "gate")}.get(site, (site,))
        found |= {f"{block}.{name}": center for name in names if f"{block}.{name}" in given}
    return found


def _given(source: Source) -> dict[str, QuantizedMatrix]:
    """Stored integers as a graph multiplies with them, where no kernel can overflow on them."""
    parts, found = source.parts, dict[str, QuantizedMatrix]()
    for name, matrix in source.integers.items():
        is_table = name.startswith("embeddings.") and not name.startswith("embeddings.project")
        is_safe = is_table or not can_saturate(matrix.values)
        if matrix.scales.shape[1] == 1 and is_safe:
            found[name.removesuffix(".weight")] = matrix
    for number in range(len({step.attention for step in parts.config.plan})):
        name = f"encoder.attentions.{number}"
        three = [found.get(f"{name}.{part}") for part in ("query", "key", "value")]
        if any(part is None for part in three):
            continue
        matrices = [part for part in three if part is not None]
        scales = [part.scales for part in matrices]
        scales[0] = scales[0] * np.float32(query_scale(parts))
        found[f"{name}.joined"] = QuantizedMatrix(
            np.concatenate([part.values for part in matrices]),
            np.concatenate(scales),
            matrices[0].group,
            max(part.limit for part in matrices),
        )
    table = found.get("embeddings.token")
    if parts.head in ("mlm", "pretraining") and table is not None and can_saturate(table.values):
        del found["embeddings.token"]
    return found
