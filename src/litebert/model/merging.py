"""What depths have of their own, merged into a block for each of them: the same function, standard weights."""

from __future__ import annotations

from typing import Final, TypeVar

import torch

from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.options import LitebertOptions
from litebert.model.resharing import empty_like, unshare

__all__ = ["merge_depth_parts"]

M = TypeVar("M", bound=AlbertModel | AlbertWithHead)

_HOMES: Final = {
    "query": "attentions", "key": "attentions", "value": "attentions", "output": "attentions",
    "gate": "ffns", "up": "ffns", "down": "ffns",
}  # fmt: skip
"""Projection -> kind of the block that stores it."""


@torch.no_grad()
def merge_depth_parts(model: M) -> M:
    """Return the model with low-rank updates and LayerNorm changes in private blocks; same outputs.

    What is left is computed by transformers too, at the size of an unshared model.

    Raises:
        SettingsError: depths have bottlenecks, which no block can hold.
    """
    options = model.config.litebert
    if options.adapter_size:
        raise SettingsError(
            "the model has bottlenecks (litebert.adapter_size) in each depth, which are layers of their "
            "own and cannot be merged; only litebert computes it"
        )
    whole = unshare(model)
    state = dict(whole.state_dict())
    prefix = "model." if isinstance(model, AlbertWithHead) else ""
    for step in range(len(whole.config.plan)):
        own = f"{prefix}encoder.adapters.{step}."
        for name, kind in _HOMES.items():
            down, up = state.pop(f"{own}{name}.a", None), state.pop(f"{own}{name}.b", None)
            if down is not None and up is not None:
                place = f"{prefix}encoder.{kind}.{step}.{name}.weight"
                state[place] = state[place] + options.lora_scale * (up @ down)
        for kind, layer in (("attentions", "attention_norm"), ("ffns", "ffn_norm")):
            for leaf in ("weight", "bias"):
                change = state.pop(f"{own}{layer}.{leaf}", None)
                if change is not None:
                    place = f"{prefix}encoder.{kind}.{step}.norm.{leaf}"
                    state[place] = state[place] + change
    names = ("lora_rank", "lora_alpha", "lora_on", "depth_norms")
    plain = {name: LitebertOptions.model_fields[name].default for name in names}
    merged = empty_like(whole, whole.config.replace(litebert=plain))
    merged.load_state_dict(state, strict=True)
    return merged
