"""Conversions of a model: between sharing plans, to another depth, to another vocabulary.

Each returns a new model of the same class; the given one is untouched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeVar, cast

import torch
from torch import Tensor, nn

from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.exits import resized_exits
from litebert.model.sharing import Plan

__all__ = [
    "add_depth_parts", "empty_like", "reshare", "resize_vocabulary", "set_depth", "share", "unshare",
]  # fmt: skip

M = TypeVar("M", bound=AlbertModel | AlbertWithHead)
Reduce = Literal["first", "mean"] | int
State = dict[str, Tensor]
_ADAPTER: Final = re.compile(r"(?:^|\.)encoder\.adapters\.(\d+)\.")
"""Weights that the step with this number has for itself."""


def share(
    model: M,
    sharing: str = "groups",
    *,
    groups: int = 1,
    reduce: Reduce = "mean",
    lossy: bool = False,
) -> M:
    """Return the model under another sharing plan of the same depth.

    Outputs stay the same where all sub-layers that come to share weights are equal. Otherwise this
    is refused, unless `lossy` allows to merge them: a start for training, not a finished model.

    Args:
        model: any plan.
        sharing: registered sharing pattern.
        groups: `num_hidden_groups` of the new plan; `none` sets its own.
        reduce: how to merge: "first" depth, "mean" over depths, or the depth with this index
            among the merged ones.
        lossy: whether merging different weights is allowed.

    Raises:
        SettingsError: unknown pattern or `reduce`, or different weights without `lossy`.
    """
    old = model.config
    if sharing in ("all", "none"):
        groups = old.num_hidden_layers if sharing == "none" else 1
    config = old.replace(num_hidden_groups=groups, litebert={"sharing": sharing})
    return reshare(model, config, reduce=reduce, lossy=lossy)


def unshare(model: M) -> M:
    """Return the model with a private copy of its block at each depth; same outputs."""
    return share(model, "none")


def reshare(model: M, config: AlbertConfig, *, reduce: Reduce = "mean", lossy: bool = False) -> M:
    """As `share`, to the plan of a whole configuration; all sizes must be those of the model.

    Raises:
        SettingsError: another number of steps, an unknown `reduce`, or different weights without
            `lossy`.
    """
    old_plan, new_plan = model.config.plan, config.plan
    if len(old_plan) != len(new_plan):
        raise SettingsError(
            f"the model runs {len(old_plan)} steps, the new plan {len(new_plan)}; "
            "change the depth with set_depth first"
        )
    if reduce not in ("first", "mean") and type(reduce) is not int:
        raise SettingsError(f'reduce is {reduce!r}, allowed are "first", "mean" or an index')
    state = _state(model)
    kept = {name: value for name, value in state.items() if _block_of(name) is None}
    for kind, sources in _sources(old_plan, new_plan).items():
        for index, olds in enumerate(sources):
            blocks = [_block(state, kind, old) for old in olds]
            kept |= _named(kind, index, _merge(blocks, olds, kind, reduce, lossy))
    return _rebuilt(model, config, kept)


def set_depth(model: M, depths: int) -> M:
    """Return the model run for another number of depths, with the same stored weights.

    A shared block runs any number of times. A plan that would need more blocks than are stored is
    refused; one that needs fewer keeps the first ones. What belongs to single depths (depth
    embeddings, low-rank updates, norms, bottlenecks) is kept for the first ones; new depths start with such that change
    nothing. Which depths are local follows from their number (`global_every`).

    Args:
        model: any plan.
        depths: new `num_hidden_layers`, >= 1.

    Raises:
        SettingsError: the new plan needs blocks that are not stored, or cannot be made.
    """
    old = model.config
    groups = min(old.num_hidden_groups, max(depths, 1))
    if old.litebert.sharing == "none":
        groups = depths
    config = old.replace(num_hidden_layers=depths, num_hidden_groups=groups)
    state = _state(model)
    kept = {name: value for name, value in state.items() if _block_of(name) is None}
    for kind, count in _counts(config.plan).items():
        stored = _counts(old.plan)[kind]
        if count > stored:
            raise SettingsError(
                f"{depths} depths under sharing {old.litebert.sharing!r} need {count} {kind}, the model "
                f"stores {stored}; share its blocks first"
            )
        for index in range(count):
            kept |= _named(kind, index, _block(state, kind, index))
    if isinstance(model, AlbertWithHead):
        kept = resized_exits(kept, model.head, depths)
    return _rebuilt(model, config, _first_depths(kept, depths, len(config.plan)))


def add_depth_parts(
    model: M,
    *,
    lora_rank: int | None = None,
    lora_alpha: float | None = None,
    lora_on: Sequence[str] | None = None,
    depth_embeddings: bool | None = None,
    depth_norms: bool | None = None,
    adapter_size: int | None = None,
) -> M:
    """Return the model with parts of single depths that change nothing yet; same outputs.

    Args:
        model: any model that has no such parts yet.
        lora_rank: rank r of low-rank updates of the shared projections; None: none.
        lora_alpha: their scale is alpha / r; None: alpha = r.
        lora_on: projections that get updates; None: all but `gate`.
        depth_embeddings: whether to add them.
        depth_norms: whether to add changes of the LayerNorms.
        adapter_size: width of bottlenecks to add; None: none.

    Raises:
        SettingsError: the model has these parts already, or values that make no configuration.
    """
    old = model.config.litebert
    parts = {
        "lora_rank": lora_rank,
        "depth_embeddings": depth_embeddings,
        "depth_norms": depth_norms,
        "adapter_size": adapter_size,
    }
    known = [name for name, value in parts.items() if value and getattr(old, name)]
    if known:
        has = " and ".join(f"{name} {getattr(old, name)}" for name in known)
        raise SettingsError(f"the model has {has} already; only what it has not can be added")
    if not any(parts.values()):
        raise SettingsError(
            "nothing to add; give lora_rank >= 1, depth_embeddings = True, depth_norms = True or "
            "adapter_size >= 1"
        )
    wanted = parts | {
        "lora_alpha": lora_alpha,
        "lora_on": None if lora_on is None else tuple(lora_on),
    }
    changes = {name: value for name, value in wanted.items() if value is not None}
    return _rebuilt(model, model.config.replace(litebert=changes), _state(model))


def resize_vocabulary(
    model: M,
    size: int,
    *,
    init: Literal["mean", "normal"] = "mean",
    generator: torch.Generator | None = None,
) -> M:
    """Return the model with another number of tokens; rows that stay are identical.

    The decoder of an mlm head stays tied to the token table, and its bias is resized with it.

    Args:
        model: any model.
        size: new V, >= 1; a smaller one drops the last rows.
        init: new rows are the mean of the old ones, or drawn as at the beginning of training.
        generator: randomness of "normal".

    Raises:
        SettingsError: a size that the configuration forbids, or an unknown `init`.
    """
    if init not in ("mean", "normal"):
        raise SettingsError(f'init is {init!r}, allowed are "mean" and "normal"')
    config = model.config.replace(vocab_size=size)
    std = config.initializer_range

    def resized(old: Tensor, fresh: Tensor) -> Tensor:
        new = old.new_empty(size, *old.shape[1:])
        new[: len(old)] = old[:size]
        new[len(old) :] = fresh
        return new

    state = _state(model)
    for name, value in state.items():
        if name.endswith("embeddings.token.weight"):
            fresh = value.mean(0)
            if init == "normal":
                fresh = torch.empty(max(0, size - len(value)), value.shape[1])
                nn.init.trunc_normal_(fresh, std=std, a=-2 * std, b=2 * std, generator=generator)
            state[name] = resized(value, fresh)
        elif name == "heads.mlm.bias":
            state[name] = resized(value, value.mean() if init == "mean" else value.new_zeros(()))
    return _rebuilt(model, config, state)


def _state(model: nn.Module) -> State:
    return {name: value.detach() for name, value in model.state_dict().items()}


def _block_of(name: str) -> tuple[str, int] | None:
    """(`attentions` or `ffns`, index) of a weight of a block; None for any other weight."""
    parts = name.split(".")
    at = parts.index("encoder") if "encoder" in parts else -1
    is_block = at >= 0 and parts[at + 1] in ("attentions", "ffns")
    return (parts[at + 1], int(parts[at + 2])) if is_block else None


def _first_depths(state: State, depths: int, steps: int) -> State:
    """Leave out what belongs to later depths; depth embeddings of new ones are zero."""
    kept: State = {}
    for name, value in state.items():
        adapter = _ADAPTER.search(name)
        if name.endswith("encoder.depths.weight"):
            value = torch.cat([value[:depths], value.new_zeros(depths, value.shape[1])])[:depths]
        if name.endswith("encoder.activation_ranges"):
            if len(value) < steps:
                raise SettingsError(
                    f"the quantized model has static activation ranges of {len(value)} steps, the new "
                    f"depth runs {steps}; change the depth first, then quantize"
                )
            value = value[:steps]
        if adapter is None or int(adapter[1]) < steps:
            kept[name] = value
    return kept


def _block(state: State, kind: str, index: int) -> State:
    """Weights of one stored sub-layer, with `{}` where the index stands."""
    old = f"encoder.{kind}.{index}."
    return {
        name.replace(old, f"encoder.{kind}.{{}}."): value
        for name, value in state.items()
        if _block_of(name) == (kind, index)
    }


def _named(kind: str, index: int, block: State) -> State:
    new = f"encoder.{kind}.{index}."
    return {name.replace(f"encoder.{kind}.{{}}.", new): value for name, value in block.items()}


def _counts(plan: Plan) -> dict[str, int]:
    return {
        "attentions": 1 + max(step.attention for step in plan),
        "ffns": 1 + max(step.ffn for step in plan),
    }


def _sources(old: Plan, new: Plan) -> dict[str, list[list[int]]]:
    """For each new sub-layer, the old ones that it replaces, in running order, once each."""
    pairs = {
        "attentions": [(a.attention, b.attention) for a, b in zip(old, new, strict=True)],
        "ffns": [(a.ffn, b.ffn) for a, b in zip(old, new, strict=True)],
    }
    return {
        kind: [
            list(dict.fromkeys(was for was, now in moves if now == index))
            for index in range(_counts(new)[kind])
        ]
        for kind, moves in pairs.items()
    }


def _merge(blocks: list[State], olds: list[int], kind: str, reduce: Reduce, lossy: bool) -> State:
    first = blocks[0]
    differences = {
        name: max(float((block[name] - value).abs().max()) for block in blocks)
        for name, value in first.items()
    }
    worst = max(differences, key=lambda name: differences[name])
    if not differences[worst]:
        return first
    if not lossy:
        raise SettingsError(
            f"{kind} {olds} hold different weights ({worst.format(olds[0])} by up to "
            f"{differences[worst]:.1e}), so sharing them changes the outputs; allow it with lossy=True "
            "and train on, or choose a plan that keeps them apart"
        )
    if reduce == "mean":
        return {name: torch.stack([b[name] for b in blocks]).mean(0) for name in first}
    index = 0 if reduce == "first" else reduce
    if not 0 <= index < len(blocks):
        raise SettingsError(f"reduce is {index}, but {len(blocks)} {kind} are merged, from 0 on")
    return blocks[index]


def empty_like(model: M, config: AlbertConfig) -> M:
    """Return a new model of the same kind, head, pooler, type and device, with other sizes or options.

    Its weights are fresh ones.
    """
    if isinstance(model, AlbertWithHead):
        make = cast("Callable[[AlbertConfig, str], M]", type(model))
        new = make(config, model.head)
        if model.model.pooler is None:
            cast(AlbertWithHead, new).model.pooler = None
    else:
        make_bare = cast("Callable[[AlbertConfig, bool], M]", type(model))
        new = make_bare(config, model.pooler is not None)
    like = next(model.parameters())
    new.to(device=like.device, dtype=like.dtype)
    return cast(M, new.train(model.training))


def _rebuilt(model: M, config: AlbertConfig, state: State) -> M:
    new = empty_like(model, config)
    fresh = {
        name: value
        for name, value in new.state_dict().items()
        if _ADAPTER.search(name) or name.endswith("encoder.depths.weight")
    }
    new.load_state_dict(fresh | state, strict=True)
    return new
