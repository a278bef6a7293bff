"""What the pooler reads where it is new: means over tokens, if those are what the encoder learnt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from litebert.checkpoint.weights import find_weights
from litebert.model.config import AlbertConfig

if TYPE_CHECKING:
    from litebert.model.albert import AlbertWithHead

__all__ = ["has_pooler", "pooler_options", "start_pooler"]

_POOLED: Final = frozenset({"sequence", "choice"})
"""Heads that read the pooler."""
IDENTITY: Final = 0.5
"""Weight of the identity in a new pooler, small enough to keep tanh out of saturation."""


def pooler_options(
    folder: Path, head: str, config: AlbertConfig, *, is_pair: bool = False
) -> dict[str, Any]:
    """Return options to change for a run that starts from an encoder of mean vectors without a pooler.

    Linear probes of litebert-small-en, mean over tokens beside first token, accuracy: Banking77 0.85
    and 0.30, TREC 0.73 and 0.52, SST-2 0.73 and 0.67 (docs/log.md).

    Args:
        folder: of the encoder.
        head: head word of the task.
        config: of the encoder.
        is_pair: whether a sequence holds two texts that are compared.

    Raises:
        CheckpointError: the headers of the weights cannot be used.
    """
    is_meant = head in _POOLED and config.litebert.pooling == "mean"
    if not is_meant or has_pooler(folder):
        return {}
    return {"pooler_reads": "segments" if is_pair and head == "sequence" else "mean"}


def has_pooler(folder: Path) -> bool:
    """Whether a model folder has a pooler.

    Raises:
        CheckpointError: the headers of the weights cannot be used.
    """
    return any("pooler." in name for name in find_weights(folder).entries)


def start_pooler(model: AlbertWithHead, folder: Path) -> None:
    """Let a new pooler of means begin near the identity, so that vectors stay what they were.

    One that compares two texts begins as the difference of their vectors.
    """
    import torch

    pooler = model.model.pooler
    if pooler is None or model.config.litebert.pooler_reads == "first":
        return
    if has_pooler(folder) and AlbertConfig.load(folder).pooler_width == model.config.pooler_width:
        return
    with torch.no_grad():
        weight = pooler.get_parameter("weight")
        weight.add_(torch.eye(*weight.shape, dtype=weight.dtype), alpha=IDENTITY)
