"""What a model costs, as numbers: parameters, bytes, operations, activations; one, or several beside each other."""

from __future__ import annotations

import errno
from dataclasses import asdict, dataclass
from typing import Any, Final

from litebert.errors import CheckpointError, SettingsError
from litebert.model.config import AlbertConfig
from litebert.model.counting import (
    activation_bytes,
    count_parameters,
    flops_per_token,
    parameter_count,
    unique_bytes,
    unshared_parameter_count,
)
from litebert.model.presets import PRESETS, preset
from litebert.model.quantization import Quantization
from litebert.models import locate
from litebert.recipes.run_folder import model_folder

__all__ = ["ModelCosts", "describe", "find_config"]

LENGTH: Final = 128
"""Tokens of a sequence for the figures that depend on it."""
BATCH_TOKENS: Final = 4096
"""Tokens of one training pass for the activation estimate."""


@dataclass(frozen=True, slots=True)
class ModelCosts:
    """The costs of one configuration.

    Attributes:
        name: preset or folder.
        model_type: `albert` if transformers computes the same model, else `litebert`.
        parameters: stored numbers of the encoder with pooler, each shared one once.
        parts: the same by part.
        unshared_parameters: the same depth and width without sharing.
        unique_bytes: float32 bytes of the stored weights.
        flops_per_token: matrix operations of one forward pass per token, at 128 tokens.
        activation_bytes_training: activations held for 4,096 tokens in training.
        activation_bytes_inference: the same without gradients.
        config: the configuration in its published layout.
    """

    name: str
    model_type: str
    parameters: int
    parts: dict[str, int]
    unshared_parameters: int
    unique_bytes: int
    flops_per_token: int
    activation_bytes_training: int
    activation_bytes_inference: int
    config: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `--json`."""
        return {"format_version": 1} | asdict(self)

    def lines(self) -> list[str]:
        """Return the costs for a person."""
        config = self.config
        saved = 1 - self.parameters / self.unshared_parameters
        return [
            self.name,
            f"  shape          {config['num_hidden_layers']} depths, width {config['hidden_size']}, "
            f"{config['num_attention_heads']} attention heads, FFN {config['intermediate_size']}, "
            f"embedding {config['embedding_size']}, vocabulary {config['vocab_size']:,}",
            f"  parameters     {self.parameters:,} with pooler "
            f"({', '.join(f'{name} {count:,}' for name, count in self.parts.items() if count)})",
            f"  unshared       {self.unshared_parameters:,} at the same depth; sharing saves {saved:.1%}",
            f"  weights        {self.unique_bytes / 1e6:,.1f} MB in float32",
            *_quantized(config),
            f"  operations     {self.flops_per_token / 1e6:,.1f} MFLOP per token at {LENGTH} tokens; none saved",
            f"  activations    {self.activation_bytes_training / 1e6:,.0f} MB to train on {BATCH_TOKENS:,} tokens, "
            f"{self.activation_bytes_inference / 1e6:,.0f} MB to predict",
            f"  read by        {'transformers and litebert' if self.model_type == 'albert' else 'litebert only'}",
        ]


def _quantized(config: dict[str, Any]) -> list[str]:
    """Say of a quantized folder what is stored as integers."""
    table = config.get("litebert", {}).get("quantization")
    if table is None:
        return []
    chosen = Quantization(**table)
    return [
        f"  quantized      weights {chosen.weights}, token table {chosen.embeddings}, activations "
        f"{chosen.activations}; a byte or less a parameter in the file"
    ]


def describe(name: str) -> ModelCosts:
    """Return the costs of a preset, a model folder, a run folder, or a configuration file.

    Raises:
        SettingsError: neither a preset nor a path.
        CheckpointError: the folder's configuration cannot be used.
    """
    config = find_config(name)
    length = min(LENGTH, config.max_position_embeddings)
    return ModelCosts(
        name=name,
        model_type=config.model_type,
        parameters=parameter_count(config),
        parts=asdict(count_parameters(config)),
        unshared_parameters=unshared_parameter_count(config),
        unique_bytes=unique_bytes(config),
        flops_per_token=flops_per_token(config, length),
        activation_bytes_training=activation_bytes(config, BATCH_TOKENS, mode="train"),
        activation_bytes_inference=activation_bytes(config, BATCH_TOKENS, mode="infer"),
        config=config.to_dict(),
    )


def find_config(name: str) -> AlbertConfig:
    """Return the configuration that a word on the command line means; arguments as `describe`."""
    if name in PRESETS:
        return preset(name)
    path = locate(name)
    if path.is_file():
        return AlbertConfig.load(path)
    if path.exists():
        return AlbertConfig.load(model_folder(path))
    try:
        return preset(name)
    except SettingsError as error:
        if "/" in name or path.suffix:
            missing = FileNotFoundError(errno.ENOENT, str(error), name)
            raise CheckpointError("there is no such file or folder", path=path) from missing
        raise


def table(costs: list[ModelCosts]) -> list[list[str]]:
    """Return rows of cells, the header first: the paper's Table 1 as numbers."""
    rows = [
        [
            "model",
            "depth",
            "width",
            "embed",
            "parameters",
            "unshared",
            "MB",
            "MFLOP/token",
            "shared",
        ]
    ]
    for cost in costs:
        config = cost.config
        rows.append(
            [
                cost.name,
                str(config["num_hidden_layers"]),
                str(config["hidden_size"]),
                str(config["embedding_size"]),
                f"{cost.parameters:,}",
                f"{cost.unshared_parameters:,}",
                f"{cost.unique_bytes / 1e6:,.1f}",
                f"{cost.flops_per_token / 1e6:,.1f}",
                f"{1 - cost.parameters / cost.unshared_parameters:.1%}",
            ]
        )
    return rows
