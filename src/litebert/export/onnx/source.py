"""A model folder as arrays, and the torch model that the result is compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from litebert.checkpoint.folder import load_encoder, load_model, saved_head
from litebert.export.onnx.parts import ModelParts
from litebert.model.albert import AlbertModel, AlbertWithHead

__all__ = ["load_source", "model_parts"]

TorchModel = AlbertModel | AlbertWithHead


def load_source(folder: Path) -> TorchModel:
    """Load the model of a folder with the head it was saved with, or as an encoder.

    Raises:
        CheckpointError: any fault of the folder.
    """
    head = saved_head(folder)
    return load_encoder(folder) if head is None else load_model(folder)


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
