"""Low-rank updates: what a depth adds to the projections it shares with other depths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from litebert.model.config import AlbertConfig

__all__ = ["LowRank", "StepAdapter", "projection_shapes"]


class LowRank(nn.Module):
    """`B (A x) * alpha / r`, to be added to `W x`; 0 at the start, since B is.

    Source: Hu et al. 2021, LoRA, section 4.1; one for each depth of a shared block as in Bae et al.
    2024, Relaxed Recursive Transformers.
    """

    def __init__(self, inputs: int, outputs: int, rank: int, scale: float, std: float) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.empty(rank, inputs))
        self.b = nn.Parameter(torch.zeros(outputs, rank))
        self.scale = scale
        nn.init.trunc_normal_(self.a, std=std, a=-2 * std, b=2 * std)

    def forward(self, inputs: Float[Tensor, "*tokens I"]) -> Float[Tensor, "*tokens O"]:
        """Return the update."""
        return functional.linear(functional.linear(inputs, self.a), self.b) * self.scale


class StepAdapter(nn.Module):
    """The low-rank updates of one step of the plan, by projection."""

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        options, shapes = config.litebert, projection_shapes(config)
        self.widths = {name: outputs for name, (_, outputs) in shapes.items()}
        for name in options.lora_on:
            update = LowRank(
                *shapes[name], options.lora_rank, options.lora_scale, config.initializer_range
            )
            self.add_module(name, update)

    def add(
        self, name: str, inputs: Float[Tensor, "*tokens I"], result: Float[Tensor, "*tokens O"]
    ) -> Float[Tensor, "*tokens O"]:
        """Return `result` with the update of projection `name`, if there is one."""
        update = cast("LowRank | None", self._modules.get(name))
        return result if update is None else result + update(inputs)

    def add_joined(
        self,
        names: Sequence[str],
        inputs: Float[Tensor, "*tokens I"],
        result: Float[Tensor, "*tokens W"],
    ) -> Float[Tensor, "*tokens W"]:
        """As `add`, for projections whose results stand side by side."""
        if not any(name in self._modules for name in names):
            return result
        parts = result.split([self.widths[name] for name in names], dim=-1)
        pairs = zip(names, parts, strict=True)
        return torch.cat([self.add(name, inputs, part) for name, part in pairs], dim=-1)


def projection_shapes(config: AlbertConfig) -> dict[str, tuple[int, int]]:
    """Return (inputs, outputs) of each projection of a block."""
    h, i = config.hidden_size, config.intermediate_size
    narrow = h // config.num_attention_heads * config.num_key_value_heads
    return {
        "query": (h, h),
        "key": (h, narrow),
        "value": (h, narrow),
        "output": (h, h),
        "gate": (h, i),
        "up": (h, i),
        "down": (i, h),
    }
