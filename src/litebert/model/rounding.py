"""A quantized model computed in floating point: weights and activations on the grid of their integers.

The same numbers as integer products give, up to the order of additions. In training gradients pass
the rounding as if it were not there (straight-through), so that weights learn to sit on the grid.
"""

from __future__ import annotations

from typing import Any, Final, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.layers import Attention, FeedForward
from litebert.model.quantization import SITES, Quantization, Site

__all__ = [
    "ActivationRounding",
    "attach_rounding",
    "quantized_layers",
    "round_activations",
    "round_matrix",
]

INT8_LIMIT: Final = 127
INT4_LIMIT: Final = 7
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


def round_matrix(
    weight: Float[Tensor, "R C"], limit: int, group: int | None = None
) -> Float[Tensor, "R C"]:
    """Return the matrix on the grid of its integers; the definition is `checkpoint.int8.quantize_matrix`.

    Args:
        weight: finite.
        limit: largest magnitude of the integers.
        group: columns that share a scale; None: all of a row.
    """
    rows, columns = weight.shape
    size = columns if group is None else min(group, columns)
    short = -columns % size
    wide = functional.pad(weight.detach(), (0, short)).view(rows, -1, size).double()  # [R, G, g]
    largest = wide.abs().amax(dim=-1, keepdim=True)
    scales = (largest / limit).clamp_min(_SMALLEST).float().double()
    values = (wide / scales).round().clamp(-limit, limit)
    result = values.float() * scales.float()
    return result.view(rows, -1)[:, :columns].to(weight.dtype)


def round_activations(
    numbers: Float[Tensor, "*shape"], low: Tensor | None = None, high: Tensor | None = None
) -> Float[Tensor, "*shape"]:
    """Return activations as uint8 holds them; the definition is `checkpoint.int8.ActivationRange`.

    Args:
        numbers: inputs of a linear layer.
        low: least number of the range; None: that of the tensor.
        high: largest number of the range; None: that of the tensor.
    """
    if not numbers.numel():
        return numbers
    plain = numbers.detach()
    is_static = low is not None and high is not None
    bottom, top = (low, high) if is_static else torch.aminmax(plain)
    bottom, top = cast(Tensor, bottom).clamp_max(0.0), cast(Tensor, top).clamp_min(0.0)
    scale = ((top.double() - bottom.double()) / 255.0).clamp_min(_SMALLEST).float()
    scale = torch.where(top > bottom, scale, torch.ones_like(scale))
    zero = (-bottom / scale).round().clamp(0, 255)
    levels = (plain / scale).round() + zero
    rounded = (levels.clamp(0, 255) - zero) * scale
    if not numbers.requires_grad:
        return rounded
    inside = (levels >= 0) & (levels <= 255) if is_static else None
    return cast(Tensor, _StraightThrough.apply(numbers, rounded, inside))


class ActivationRounding:
    """Rounds what enters the projections of a step, or watches its range.

    Attributes:
        is_on: whether numbers are rounded.
        seen: while calibrating: the widest range so far, [steps, 4, 2].
    """

    def __init__(self, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self.seen: Tensor | None = None
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
        self, site: Site, numbers: Float[Tensor, "*tokens I"]
    ) -> Float[Tensor, "*tokens I"]:
        """Return the inputs of a projection as the integers hold them."""
        place = SITES.index(site)
        if self.seen is not None and numbers.numel():
            low, high = torch.aminmax(numbers.detach())
            seen = self.seen[self._step, place]
            seen[0], seen[1] = torch.minimum(seen[0], low), torch.maximum(seen[1], high)
        if not self.is_on:
            return numbers
        if self._ranges is None:
            return round_activations(numbers)
        return round_activations(numbers, *self._ranges[self._step, place])

    def watch(self, steps: int) -> None:
        """Begin to note ranges; every one holds 0."""
        self.seen = torch.zeros(steps, len(SITES), 2)


class _Rounded(nn.Module):
    """A layer whose `weight` is read on the grid; the stored one stays what the optimizer changes."""

    limit: int
    group: int | None
    rounds_inputs: bool
    grid: tuple[Any, Tensor] | None

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if name != "weight" or not isinstance(value, Tensor) or value.is_meta:
            return value
        version = 0 if value.is_inference() else value._version  # pyright: ignore[reportPrivateUsage]
        key = (version, value.data_ptr(), value.dtype, torch.is_inference_mode_enabled())
        if self.grid is None or self.grid[0] != key:  # once for each change of the weight
            self.grid = (key, round_matrix(value, self.limit, self.group))
        rounded = self.grid[1]
        if not (value.requires_grad and torch.is_grad_enabled()):
            return rounded
        return _StraightThrough.apply(value, rounded, None)


class RoundedLinear(_Rounded, nn.Linear):
    """A linear layer on the grid; called as a module, it rounds its inputs too."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name of nn.Linear
        """Return `weight input + bias`."""
        entering = round_activations(input) if self.rounds_inputs else input
        return functional.linear(entering, self.weight, self.bias)


class RoundedEmbedding(_Rounded, nn.Embedding):
    """An embedding table on the grid."""


def quantized_layers(model: nn.Module) -> dict[str, nn.Linear | nn.Embedding]:
    """Return the layers whose weights become integers, by name; a shared one is there once."""
    kinds = (nn.Linear, nn.Embedding, RoundedLinear, RoundedEmbedding)
    return {
        name: cast("nn.Linear | nn.Embedding", module)
        for name, module in model.named_modules()
        if type(module) in kinds
    }


def grid_of(name: str, quantization: Quantization, *, is_table: bool) -> tuple[int, int | None]:
    """Return the largest integer and the group of the layer called `name`."""
    if not is_table:
        return quantization.weight_limit, None
    if quantization.embeddings == "int4" and name.endswith("embeddings.token"):
        return INT4_LIMIT, quantization.embedding_group
    return INT8_LIMIT, None


def attach_rounding(model: AlbertModel | AlbertWithHead) -> None:
    """Let a model compute as its quantized form does; nothing without `litebert.quantization`.

    Names of weights and what the optimizer changes stay the same.
    """
    quantization = model.config.litebert.quantization
    if quantization is None:
        return
    rounds = quantization.activations != "none"
    for name, layer in quantized_layers(model).items():
        is_table = isinstance(layer, nn.Embedding)
        rounded = cast(Any, layer)
        rounded.__class__ = RoundedEmbedding if is_table else RoundedLinear
        rounded.limit, rounded.group = grid_of(name, quantization, is_table=is_table)
        rounded.rounds_inputs, rounded.grid = rounds, None
    base = model.model if isinstance(model, AlbertWithHead) else model
    encoder = base.encoder
    rounding = ActivationRounding(is_on=rounds)
    encoder.rounding = rounding
    for part in (*encoder.attentions, *encoder.ffns):
        cast("Attention | FeedForward", part).rounding = rounding
