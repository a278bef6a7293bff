"""Quantization of a model: the same weights on the grid of their integers, and how the error grows by depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from litebert.checkpoint.rounded import attach_rounding
from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.packing import Packing
from litebert.model.quantization import SITES, Quantization, Site
from litebert.model.resharing import empty_like
from litebert.model.rounding import ActivationRounding

__all__ = ["DepthError", "calibrate", "depth_errors", "with_quantization"]

M = TypeVar("M", AlbertModel, AlbertWithHead)
_LAYERS: Final[dict[Site, tuple[str, ...]]] = {
    "qkv": ("query", "key", "value"),
    "output": ("output",),
    "up": ("up", "gate"),
    "down": ("down",),
}
Batch = tuple[Int[Tensor, " T"], Packing]
"""Packed ids and the bounds of their sequences."""


@dataclass(frozen=True, slots=True)
class DepthError:
    """How far the hidden states after one depth are from those of the plain model.

    Attributes:
        depth: 0 is what enters the first depth.
        cosine_mean: mean cosine over tokens.
        cosine_min: least cosine of a token.
        relative: length of the difference over length of the plain states, all tokens together.
    """

    depth: int
    cosine_mean: float
    cosine_min: float
    relative: float


def with_quantization(model: M, quantization: Quantization) -> M:
    """Return a new model with the same weights that computes as its quantized form does.

    Centers and static ranges are still zero; `calibrate` finds them.

    Args:
        model: any plan and head; untouched.
        quantization: what becomes integers.

    Raises:
        SettingsError: the model is quantized already: its weights would be rounded twice.
    """
    if model.config.litebert.quantization is not None:
        raise SettingsError(
            "the model is quantized already; its weights would be rounded twice. Quantize the model "
            "that it was made of"
        )
    config = model.config.replace(litebert={"quantization": quantization.model_dump()})
    new = empty_like(model, config)
    new.load_state_dict(new.state_dict() | model.state_dict())
    attach_rounding(new)
    return new


def calibrate(model: AlbertModel | AlbertWithHead, batches: Sequence[Batch]) -> None:
    """Set centers and static ranges of a quantized model from what it meets on some batches.

    Activations are not rounded meanwhile. The mean error that rounded weights make at the center is
    taken off the bias. A model without activations to round stays as it is.

    Args:
        model: result of `with_quantization`, with the weights as they were before rounding.
        batches: texts of the kind that the model is for.

    Raises:
        SettingsError: no tokens to calibrate on, or no quantized model.
    """
    encoder = _base(model).encoder
    rounding, quantization = encoder.rounding, model.config.litebert.quantization
    if quantization is None or not isinstance(rounding, ActivationRounding):
        raise SettingsError("only a quantized model is calibrated; make one with with_quantization")
    if quantization.activations == "none":
        return
    if not any(packing.num_tokens for _, packing in batches):
        raise SettingsError("calibration needs texts; give some with --data or --texts")
    if quantization.has_centers:
        for (part, site), center in _means(model, batches, rounding).items():
            _set_center(part, site, center)
    if encoder.activation_ranges is not None:
        encoder.activation_ranges.copy_(_ranges(model, batches, rounding))


def _means(
    model: AlbertModel | AlbertWithHead, batches: Sequence[Batch], rounding: ActivationRounding
) -> dict[tuple[nn.Module, Site], Tensor]:
    """Mean input of each stored sub-layer and site, over tokens and over the steps that run it."""
    encoder = _base(model).encoder
    sums: dict[tuple[nn.Module, Site], Tensor] = {}
    counts: dict[tuple[nn.Module, Site], int] = {}

    def watch(step: int, site: Site, rows: Tensor) -> None:
        where = encoder.plan[step]
        is_attention = site in ("qkv", "output")
        stored, index = (
            (encoder.attentions, where.attention) if is_attention else (encoder.ffns, where.ffn)
        )
        flat = rows.flatten(0, -2).double()
        key: tuple[nn.Module, Site] = (stored[index], site)
        sums[key] = sums[key] + flat.sum(0) if key in sums else flat.sum(0)
        counts[key] = counts.get(key, 0) + len(flat)

    _run_watched(model, batches, rounding, watch)
    return {key: (total / counts[key]).float() for key, total in sums.items()}


def _ranges(
    model: AlbertModel | AlbertWithHead, batches: Sequence[Batch], rounding: ActivationRounding
) -> Float[Tensor, "steps 4 2"]:
    """Least and largest input of each step and site, less the center; every range holds 0."""
    found = torch.zeros(len(_base(model).encoder.plan), len(SITES), 2)

    def watch(step: int, site: Site, rows: Tensor) -> None:
        low, high = torch.aminmax(rows)
        seen = found[step, SITES.index(site)]
        seen[0], seen[1] = torch.minimum(seen[0], low), torch.maximum(seen[1], high)

    _run_watched(model, batches, rounding, watch)
    return found


def _run_watched(
    model: AlbertModel | AlbertWithHead,
    batches: Sequence[Batch],
    rounding: ActivationRounding,
    watch: Callable[[int, Site, Tensor], None],
) -> None:
    rounding.is_on, rounding.watcher = False, watch
    try:
        with torch.no_grad():
            for ids, packing in batches:
                if packing.num_tokens:
                    _base(model).forward_packed(ids, packing)
    finally:
        rounding.is_on, rounding.watcher = True, None


def _set_center(part: nn.Module, site: Site, center: Float[Tensor, " I"]) -> None:
    """Store a center, and let the bias take up what rounded weights get wrong there."""
    part.get_buffer(f"{site}_center").copy_(center)
    for name in _LAYERS[site]:
        layer = cast(Any, getattr(part, name, None))
        if layer is not None:
            exact, rounded = part.state_dict()[f"{name}.weight"], layer.weight.detach()
            with torch.no_grad():
                layer.bias.add_((exact - rounded) @ center)


def depth_errors(
    plain: AlbertModel | AlbertWithHead,
    other: AlbertModel | AlbertWithHead,
    batches: Sequence[Batch],
) -> list[DepthError]:
    """Return how the hidden states of two models of one shape differ, depth by depth.

    Raises:
        SettingsError: no batches, or another number of depths.
    """
    if not any(packing.num_tokens for _, packing in batches):
        raise SettingsError("there is no text to compare the models on")
    cosines: list[list[Tensor]] = []
    squares: list[Tensor] = []
    with torch.no_grad():
        for ids, packing in batches:
            first, second = (_states(model, ids, packing) for model in (plain, other))
            if len(first) != len(second):
                raise SettingsError(
                    f"the models run {len(first) - 1} and {len(second) - 1} depths; compare equal ones"
                )
            cosines = cosines or [[] for _ in first]
            for place, (a, b) in enumerate(zip(first, second, strict=True)):
                cosines[place].append(torch.nn.functional.cosine_similarity(a, b, dim=-1))
            squares.append(
                torch.stack(
                    [
                        torch.stack([(a - b).square().sum(), a.square().sum()])
                        for a, b in zip(first, second, strict=True)
                    ]
                )
            )
    sums = torch.stack(squares).sum(0)  # [L + 1, 2]
    errors: list[DepthError] = []
    for depth, parts in enumerate(cosines):
        values = torch.cat(parts)
        relative = float((sums[depth, 0] / sums[depth, 1].clamp_min(1e-30)).sqrt())
        errors.append(DepthError(depth, float(values.mean()), float(values.min()), relative))
    return errors


def _states(
    model: AlbertModel | AlbertWithHead, ids: Tensor, packing: Packing
) -> list[Float[Tensor, "T H"]]:
    output = _base(model).forward_packed(ids, packing, output_hidden_states=True)
    return [state.double() for state in output.hidden_states or ()]


def _base(model: AlbertModel | AlbertWithHead) -> AlbertModel:
    return model.model if isinstance(model, AlbertWithHead) else model
