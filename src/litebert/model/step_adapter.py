"""What one step of the plan has for itself, beside the weights that it shares with other depths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from litebert.model.bottleneck import Bottleneck
from litebert.model.config import AlbertConfig
from litebert.model.lora import LowRank, projection_shapes
from litebert.model.norm import LayerNorm, NormChange

__all__ = ["StepAdapter"]

SubLayer = Literal["attention", "ffn"]


class StepAdapter(nn.Module):
    """Low-rank updates of projections, changes of both LayerNorms, and bottlenecks, by options.

    All of them change nothing at the start.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        options, shapes = config.litebert, projection_shapes(config)
        self.widths = {name: outputs for name, (_, outputs) in shapes.items()}
        self.has_updates = options.lora_rank > 0
        for name in options.lora_on if self.has_updates else ():
            update = LowRank(
                *shapes[name], options.lora_rank, options.lora_scale, config.initializer_range
            )
            self.add_module(name, update)
        for place in ("attention", "ffn"):
            if options.depth_norms:
                self.add_module(f"{place}_norm", NormChange(config.hidden_size))
            if options.adapter_size:
                self.add_module(f"{place}_bottleneck", Bottleneck(config))

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

    def squeeze(
        self, place: SubLayer, update: Float[Tensor, "*tokens H"]
    ) -> Float[Tensor, "*tokens H"]:
        """Return the output of a sub-layer as it enters the residual."""
        bottleneck = cast("Bottleneck | None", self._modules.get(f"{place}_bottleneck"))
        return update if bottleneck is None else bottleneck(update)

    def normalise(
        self, place: SubLayer, norm: LayerNorm, hidden: Float[Tensor, "*tokens H"]
    ) -> Float[Tensor, "*tokens H"]:
        """Return `norm(hidden)`, with the gain and bias of this step."""
        change = cast("NormChange | None", self._modules.get(f"{place}_norm"))
        if change is None:
            return norm(hidden)
        return norm.scaled(hidden, norm.weight + change.weight, norm.bias + change.bias)
