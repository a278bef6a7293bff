"""How much each attention head and FFN unit matters, summed over all depths that share it.

One removed column disappears from every depth, so its score is the change of the loss when it is
masked everywhere: a factor 1 on its output, the same at all depths, and the gradient of that factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.layers import Attention, FeedForward
from litebert.model.quantization import Site
from litebert.model.sharing import Plan

__all__ = ["Importance", "Masks", "taylor_importance"]


@dataclass(frozen=True, slots=True)
class Importance:
    """Scores of what can be removed, >= 0; the smallest go first.

    Attributes:
        heads: of each stored attention, a score for each key-value head with its query heads, [K].
        units: of each stored feed-forward, a score for each inner unit, [I].
        tokens: tokens of the texts that were looked at.
    """

    heads: tuple[Float[Tensor, " K"], ...]
    units: tuple[Float[Tensor, " I"], ...]
    tokens: int


class Masks:
    """Factors on the outputs of heads and units; what `Encoder.rounding` takes, so at every depth.

    Attributes:
        heads: for each stored attention, [K].
        units: for each stored feed-forward, [I].
    """

    reaches_updates = True

    def __init__(self, model: AlbertModel | AlbertWithHead) -> None:
        base = model.model if isinstance(model, AlbertWithHead) else model
        config, encoder = base.config, base.encoder
        self._plan: Plan = encoder.plan
        self._step = 0
        self._width = config.attention_size // config.num_key_value_heads
        self.heads = [torch.ones(config.num_key_value_heads) for _ in encoder.attentions]
        self.units = [torch.ones(config.intermediate_size) for _ in encoder.ffns]

    def begin_step(self, step: int, ranges: Tensor | None) -> None:
        """Say which step of the plan runs next."""
        del ranges
        self._step = step

    def __call__(self, site: Site, numbers: Tensor, center: Tensor | None) -> Tensor:
        """Return what enters a projection, masked where it is the output of heads or units."""
        del center
        if site == "output":
            mask = self.heads[self._plan[self._step].attention]
            return numbers * mask.repeat_interleave(self._width)
        if site == "down":
            return numbers * self.units[self._plan[self._step].ffn]
        return numbers

    def attach(self, model: AlbertModel | AlbertWithHead) -> Callable[[], None]:
        """Let a model run with the masks; return what takes them off.

        Raises:
            SettingsError: a quantized model, whose rounding stands in this place.
        """
        base = model.model if isinstance(model, AlbertWithHead) else model
        encoder = base.encoder
        if encoder.rounding is not None:
            raise SettingsError(
                "the model is quantized; prune the model that it was made of, then quantize"
            )
        parts = [p for p in base.modules() if isinstance(p, Attention | FeedForward)]

        def put(value: Masks | None) -> None:
            encoder.rounding = value
            for part in parts:
                part.rounding = value

        put(self)
        return lambda: put(None)


def taylor_importance(
    model: AlbertModel | AlbertWithHead, losses: Iterable[tuple[Callable[[], Tensor], int]]
) -> Importance:
    """Return mean |gradient of the factor| over batches: to first order, the loss that removal costs.

    The gradient of a factor is a sum over the depths that run the part, with signs: what one depth
    gains and another loses cancels, as it does when the column is gone.

    Source: Molchanov et al. 2017, Pruning CNNs, section 2.2; Michel et al. 2019, Are Sixteen Heads
    Really Better than One, equation 2.
    Differs from: there each layer has heads of its own, here one factor acts at all depths.

    Args:
        model: in evaluation mode; its gradients are not touched.
        losses: (function that runs the model on a few examples and returns the mean loss, tokens).

    Raises:
        SettingsError: no examples, or a quantized model.
    """
    masks = Masks(model)
    undo = masks.attach(model)
    leaves = [*masks.heads, *masks.units]
    for leaf in leaves:
        leaf.requires_grad_(True)
    sums = [torch.zeros_like(leaf) for leaf in leaves]
    count = tokens = 0
    try:
        for loss, size in losses:
            gradients = torch.autograd.grad(loss(), leaves)
            for total, gradient in zip(sums, gradients, strict=True):
                total += gradient.abs()
            count, tokens = count + 1, tokens + size
    finally:
        undo()
    if not count:
        raise SettingsError("importance needs labelled examples; give some with --data")
    scores = [total.detach() / count for total in sums]
    split = len(masks.heads)
    return Importance(tuple(scores[:split]), tuple(scores[split:]), tokens)
