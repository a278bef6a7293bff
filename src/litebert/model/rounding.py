"""A quantized model computed in floating point: weights and activations on the grid of their integers.

The same numbers as integer products give, up to the order of additions. In training gradients pass
the rounding as if it were not there (straight-through), so that weights learn to sit on the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.layers import Attention, FeedForward
from litebert.model.quantization import SITES, Quantization, Site

__all__ = ["ActivationRounding", "Rule", "quantized_layers", "round_activations", "use_rounding"]

Rule = Callable[[str, Quantization, Tensor], Tensor]
"""(name of a layer, settings, weight) -> the weight on the grid of its integers, same shape."""

LEAST_ROW: Final = 1e-6
"""Rows are never enlarged by more than one over this: a row of zeros stays one."""
_SMALLEST: Final = float(torch.finfo(torch.float32).tiny)


class _StraightThrough(torch.autograd.Function):
    """`rounded` forward, the gradient of `numbers` backward, where `inside` allows."""

    @staticmethod
    def forward(ctx: Any, numbers: Tensor, rounded: Tensor, inside: Tensor | None) -> Tensor:
        del numbers
        if inside is not None:
            ctx.save_for_backward(inside)
        return rounded.view_as(rounded)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        grad = grads[0]
        return (grad * ctx.saved_tensors[0] if ctx.saved_tensors else grad), None, None


def round_activations(
    numbers: Float[Tensor, "*shape"], low: Tensor | None = None, high: Tensor | None = None
) -> Float[Tensor, "*shape"]:
    """Return activations as uint8 holds them; the definition is `checkpoint.int8.ActivationRange`.

    Without a range every row is brought to the same size first and back after, and the range is that
    of all rows: a few tokens are much larger than others and would set the scale of all.

    Args:
        numbers: inputs of a projection, a row for each token.
        low: least number of a static range, with `high`; None: dynamic.
        high: largest number of it.
    """
    if not numbers.numel():
        return numbers
    plain = numbers.detach()
    is_static = low is not None and high is not None
    size = None
    if is_static:
        bottom, top = cast(Tensor, low), cast(Tensor, high)
    else:
        size = plain.abs().amax(dim=-1, keepdim=True).clamp_min(LEAST_ROW)
        plain = plain / size
        bottom, top = torch.aminmax(plain)
    bottom, top = bottom.clamp_max(0.0), top.clamp_min(0.0)
    scale = ((top.double() - bottom.double()) / 255.0).clamp_min(_SMALLEST).float()
    scale = torch.where(top > bottom, scale, torch.ones_like(scale))
    zero = (-bottom / scale).round().clamp(0, 255)
    levels = (plain / scale).round() + zero
    rounded = (levels.clamp(0, 255) - zero) * scale
    rounded = rounded if size is None else rounded * size
    if not (numbers.requires_grad and torch.is_grad_enabled()):
        return rounded
    inside = (levels >= 0) & (levels <= 255) if is_static else None
    return cast(Tensor, _StraightThrough.apply(numbers, rounded, inside))


class ActivationRounding:
    """Rounds what enters the projections of a step, or watches it.

    Attributes:
        is_on: whether numbers are rounded.
        watcher: while calibrating: is given (step, site, numbers less their center).
    """

    reaches_updates = False

    def __init__(self, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self.watcher: Callable[[int, Site, Tensor], None] | None = None
        self._step = 0
        self._ranges: Tensor | None = None

    def begin_step(self, step: int, ranges: Tensor | None) -> None:
        """Say which step of the plan runs next.

        Args:
            step: its number.
            ranges: least and largest number of each step and site, [steps, 4, 2]; None: of each tensor.
        """
        self._step, self._ranges = step, ranges

    def __call__(
        self,
        site: Site,
        numbers: Float[Tensor, "*tokens I"],
        center: Float[Tensor, " I"] | None,
    ) -> Float[Tensor, "*tokens I"]:
        """Return the inputs of a projection as center plus integers hold them."""
        rest = numbers if center is None else numbers - center
        if self.watcher is not None:
            self.watcher(self._step, site, rest.detach())
        if not self.is_on:
            return numbers
        if self._ranges is None:
            rounded = round_activations(rest)
        else:
            rounded = round_activations(rest, *self._ranges[self._step, SITES.index(site)])
        return rounded if center is None else rounded + center


class _Rounded(nn.Module):
    """A layer whose `weight` is read on the grid; the stored one stays what the optimizer changes."""

    rule: Callable[[Tensor], Tensor]
    grid: tuple[Any, Tensor] | None

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if name != "weight" or not isinstance(value, Tensor) or value.is_meta:
            return value
        key = _state_of(value)
        if self.grid is None or self.grid[0] != key:  # once for each change of the weight
            self.grid = (key, self.rule(value.detach()))
        rounded = self.grid[1]
        if not (value.requires_grad and torch.is_grad_enabled()):
            return rounded
        return _StraightThrough.apply(value, rounded, None)


class RoundedLinear(_Rounded, nn.Linear):
    """A linear layer on the grid."""


class RoundedEmbedding(_Rounded, nn.Embedding):
    """An embedding table on the grid."""


class _NamedRule:
    """The rule of one layer; a class, so that models can be copied and pickled."""

    def __init__(self, rule: Rule, name: str, quantization: Quantization) -> None:
        self.rule, self.name, self.quantization = rule, name, quantization

    def __call__(self, weight: Tensor) -> Tensor:
        return self.rule(self.name, self.quantization, weight)


def quantized_layers(model: nn.Module) -> dict[str, nn.Linear | nn.Embedding]:
    """Return the layers whose weights become integers, by name; a shared one is there once."""
    kinds = (nn.Linear, nn.Embedding, RoundedLinear, RoundedEmbedding)
    return {
        name: cast("nn.Linear | nn.Embedding", module)
        for name, module in model.named_modules()
        if type(module) in kinds
    }


def use_rounding(model: AlbertModel | AlbertWithHead, rule: Rule) -> None:
    """Let a model compute as its quantized form does; nothing without `litebert.quantization`.

    Names of weights and what the optimizer changes stay the same. Projections outside the blocks
    (embeddings, pooler, heads) run once and round their weights alone.
    """
    quantization = model.config.litebert.quantization
    if quantization is None:
        return
    for name, layer in quantized_layers(model).items():
        rounded = cast(Any, layer)
        is_table = isinstance(layer, nn.Embedding)
        rounded.__class__ = RoundedEmbedding if is_table else RoundedLinear
        rounded.rule, rounded.grid = _NamedRule(rule, name, quantization), None
    encoder = (model.model if isinstance(model, AlbertWithHead) else model).encoder
    rounding = ActivationRounding(is_on=quantization.activations != "none")
    encoder.rounding = rounding
    for part in (*encoder.attentions, *encoder.ffns):
        cast("Attention | FeedForward", part).rounding = rounding


def _state_of(weight: Tensor) -> tuple[Any, ...]:
    """What changes whenever a weight does, and where a tensor of another mode is needed."""
    version = 0 if weight.is_inference() else weight._version  # pyright: ignore[reportPrivateUsage]
    return version, weight.data_ptr(), weight.dtype, torch.is_inference_mode_enabled()
