"""Learning rates that fall towards the embeddings, for weights that belong to depths."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from litebert.model.depth_decay import DepthDecay
from litebert.model.encoder import Encoder

__all__ = ["rate_of", "split_by_rate"]

_EMBEDDINGS: Final = "embeddings"


def rate_of(name: str, decay: DepthDecay) -> float:
    """Return the factor of the rate of a weight; 1 for what belongs to no depth.

    Args:
        name: of the weight in the model, for example `model.encoder.ffns.0.up.weight`.
        decay: factors of its encoder.
    """
    parts = name.split(".")
    if "encoder" not in parts:
        return decay.embedding_rate if _EMBEDDINGS in parts[:-1] else 1.0
    kind, index = (*parts[parts.index("encoder") + 1 :], "", "")[:2]
    rates = {
        "attentions": decay.attention_rates,
        "ffns": decay.ffn_rates,
        "adapters": decay.step_rates,
    }.get(kind)
    return 1.0 if rates is None else rates[int(index)]


def split_by_rate(
    model: nn.Module, groups: list[dict[str, Any]], depth_decay: float
) -> list[dict[str, Any]]:
    """Cut groups of parameters so that each has one rate, as `lr_ratio`.

    Args:
        model: with one encoder, whose plan says how many depths there are.
        groups: of its parameters.
        depth_decay: factor from one depth to the one before.
    """
    encoder = next(part for part in model.modules() if isinstance(part, Encoder))
    decay = DepthDecay(encoder.plan, encoder.inner, depth_decay)
    rates = {id(p): rate_of(name, decay) for name, p in model.named_parameters()}
    found: list[dict[str, Any]] = []
    for group in groups:
        by_rate: dict[float, list[nn.Parameter]] = {}
        for parameter in group["params"]:
            by_rate.setdefault(rates[id(parameter)], []).append(parameter)
        found += [group | {"params": own, "lr_ratio": rate} for rate, own in by_rate.items()]
    return found
