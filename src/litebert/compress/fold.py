"""An unshared encoder turned into a shared one: a start for distillation, not a finished model.

Table cut by SVD, blocks folded into fewer, and what each depth loses by that given back, as far as
it goes, as low-rank updates. Source: Bae et al. 2024, Relaxed Recursive Transformers, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

import torch
from torch import Tensor, nn

from litebert.compress.factorize import (
    EmbeddingTables,
    FactorizedTables,
    explained_energy,
    factorize_tables,
    felt,
)
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.options import PROJECTIONS, LitebertOptions
from litebert.model.sharing import num_attentions, num_ffns

__all__ = ["FoldOptions", "FoldReport", "Keep", "fold"]

Keep = Literal["average", "stepwise"] | int | tuple[int, ...]
SHOWN_SIZES: Final = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768)
"""Embedding sizes whose explained energy is reported."""
_PLACE: Final = {
    **dict.fromkeys(("query", "key", "value", "output"), "attentions"),
    **dict.fromkeys(("gate", "up", "down"), "ffns"),
}
"""Projection -> where it is stored."""


@dataclass(frozen=True, slots=True)
class FoldOptions:
    """How to fold.

    Attributes:
        embedding_size: new E; None: as it is.
        blocks: stored blocks of the result.
        keep: "average" of the depths that a block replaces; "stepwise": as many depths as there
            are blocks, evenly spaced from the first to the last (with one block the middle one);
            the number of the depth, from 0, that each block is (among those it replaces); or the depth
            of the given model, from 0, that each block is.
        lora_rank: rank of the update of each depth; 0: none.
        lora_on: projections that get updates.
        depth_norms: whether each depth keeps its own LayerNorms.
        sharing: "groups": neighbours share a block; "cycle": the blocks are run through again and
            again.
    """

    embedding_size: int | None = None
    blocks: int = 1
    keep: Keep = "average"
    lora_rank: int = 0
    lora_on: tuple[str, ...] = ("query", "key", "value", "output", "up", "down")
    depth_norms: bool = False
    sharing: Literal["groups", "cycle"] = "groups"


@dataclass(frozen=True, slots=True)
class FoldReport:
    """What folding kept.

    Attributes:
        explained: embedding size -> share of the table's energy that it holds, measured by what the
            vectors feel where that was given.
        embedding_fit: share of the variance of what entered the first block that is met.
        residual: (depth, projection) -> share of the norm of its weight that the result misses.
        parameters_before: weights of the encoder, pooler and heads included.
        parameters_after: the same of the result.
    """

    explained: dict[int, float]
    embedding_fit: float
    residual: dict[tuple[int, str], float] = field(default_factory=dict[tuple[int, str], float])
    parameters_before: int = 0
    parameters_after: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "explained_energy": {str(size): share for size, share in self.explained.items()},
            "embedding_fit": self.embedding_fit,
            "residual": [
                {"depth": depth, "projection": name, "share": share}
                for (depth, name), share in self.residual.items()
            ],
            "parameters_before": self.parameters_before,
            "parameters_after": self.parameters_after,
        }


def fold(
    model: AlbertWithHead,
    options: FoldOptions,
    *,
    weights: Tensor | None = None,
    sensitivity: Tensor | None = None,
) -> tuple[AlbertWithHead, FoldReport]:
    """Return the folded model and what it kept; the given model is untouched.

    A model that is shared already, folded into the same blocks, loses nothing; so does any model
    with updates of full rank and LayerNorms of its own for each depth, but for the biases of the
    projections, which are averaged.

    Args:
        model: an encoder with any head, without parts of single depths.
        options: how to fold.
        weights: [V] how much each piece counts in the cut of the table; None: all the same.
        sensitivity: [D, D] how much directions of the first block's input are felt, as
            `vector_sensitivity`, for the same; None: all alike.

    Raises:
        SettingsError: options that this model does not allow.
    """
    old = model.config
    if old.litebert.has_step_parts or old.litebert.depth_embeddings:
        raise SettingsError(
            "the model has parts of single depths already (low-rank updates, norms, bottlenecks, "
            "embeddings); only models without such can be folded"
        )
    config = _folded_config(old, options)
    state = {name: value.detach() for name, value in model.state_dict().items()}
    new = AlbertWithHead(config, model.head)
    if model.model.pooler is None:
        new.model.pooler = None
    with torch.no_grad():
        factors = _fold_embeddings(model, new, options, weights, sensitivity)
        _fold_blocks(model, new, options)
        residual = _fold_steps(model, new)
    rest = {
        name: value
        for name, value in state.items()
        if not name.startswith(("model.embeddings.", "model.encoder."))
    }
    new.load_state_dict(rest, strict=False)
    metric = felt(sensitivity, state["model.embeddings.norm.weight"])
    shares = explained_energy(state["model.embeddings.token.weight"], weights, metric)
    sizes = sorted({*(s for s in SHOWN_SIZES if s <= len(shares)), config.embedding_size})
    report = FoldReport(
        explained={size: float(shares[size - 1]) for size in sizes},
        embedding_fit=1.0 if factors is None else factors.fit,
        residual=residual,
        parameters_before=sum(p.numel() for p in model.parameters()),
        parameters_after=sum(p.numel() for p in new.parameters()),
    )
    return new.eval(), report


def _folded_config(old: AlbertConfig, options: FoldOptions) -> AlbertConfig:
    depths = old.num_hidden_layers * old.inner_group_num
    if not 1 <= options.blocks <= depths:
        raise SettingsError(f"blocks is {options.blocks}, allowed are 1 to the {depths} depths")
    size = options.embedding_size or old.embedding_size
    if size > old.embedding_size:
        raise SettingsError(
            f"embedding size is {size}, allowed are up to the {old.embedding_size} that there are"
        )
    unknown = [name for name in options.lora_on if name not in PROJECTIONS]
    if unknown:
        raise SettingsError(f"no projection {unknown[0]!r}; allowed are {', '.join(PROJECTIONS)}")
    is_cut = size != old.embedding_size
    changes = {
        "sharing": "all" if options.blocks == 1 else options.sharing,
        "project_embeddings": old.has_projection or is_cut,
        "depth_norms": options.depth_norms,
    }
    if options.lora_rank:
        changes |= {"lora_rank": options.lora_rank, "lora_on": options.lora_on}
    return AlbertConfig.model_validate(
        old.model_dump()
        | {
            "embedding_size": size,
            "num_hidden_layers": depths,
            "inner_group_num": 1,
            "num_hidden_groups": options.blocks,
            "litebert": LitebertOptions.model_validate(old.litebert.model_dump() | changes),
        }
    )


def _fold_embeddings(
    model: AlbertWithHead,
    new: AlbertWithHead,
    options: FoldOptions,
    weights: Tensor | None,
    sensitivity: Tensor | None,
) -> FactorizedTables | None:
    """Copy the embeddings, or cut them; the projection that was there follows the new one."""
    old, target = model.model.embeddings, new.model.embeddings
    if options.embedding_size in (None, model.config.embedding_size):
        target.load_state_dict(old.state_dict())
        return None
    tables = EmbeddingTables(
        token=old.token.weight.detach(),
        position=None if old.position is None else old.position.weight.detach(),
        token_type=old.token_type.weight.detach(),
        gain=old.norm.weight.detach(),
        bias=old.norm.bias.detach(),
        eps=model.config.layer_norm_eps,
    )
    factors = factorize_tables(
        tables, options.embedding_size, weights=weights, sensitivity=sensitivity
    )
    weight, bias = factors.weight, factors.bias
    if old.project is not None:
        bias = old.project.weight @ bias + old.project.bias
        weight = old.project.weight @ weight
    target.token.weight.copy_(factors.tables.token)
    target.token_type.weight.copy_(factors.tables.token_type)
    if target.position is not None and factors.tables.position is not None:
        target.position.weight.copy_(factors.tables.position)
    target.norm.weight.copy_(factors.tables.gain)
    target.norm.bias.copy_(factors.tables.bias)
    assert target.project is not None  # noqa: S101 - a cut table always has a projection
    target.project.weight.copy_(weight)
    target.project.bias.copy_(bias)
    return factors


def _fold_blocks(model: AlbertWithHead, new: AlbertWithHead, options: FoldOptions) -> None:
    """Fill each stored sub-layer from the depths that it replaces."""
    old_plan, new_plan = model.config.plan, new.config.plan
    depths = len(new_plan)
    for kind, count in (("attentions", num_attentions(new_plan)), ("ffns", num_ffns(new_plan))):
        sources = cast(nn.ModuleList, getattr(model.model.encoder, kind))
        targets = cast(nn.ModuleList, getattr(new.model.encoder, kind))
        name = "attention" if kind == "attentions" else "ffn"
        for index in range(count):
            used = [d for d in range(depths) if getattr(new_plan[d], name) == index]
            chosen = _chosen(used, index, count, depths, options.keep)
            states = [sources[getattr(old_plan[d], name)].state_dict() for d in chosen]
            merged = {
                key: states[0][key]
                if all(torch.equal(state[key], states[0][key]) for state in states)
                else torch.stack([state[key] for state in states]).mean(0)
                for key in states[0]
            }
            targets[index].load_state_dict(merged)


def _chosen(used: list[int], index: int, count: int, depths: int, keep: Keep) -> list[int]:
    """The depths that a block is made of."""
    if keep == "average":
        return used
    if keep == "stepwise":
        return [round(index * (depths - 1) / (count - 1)) if count > 1 else (depths - 1) // 2]
    if isinstance(keep, tuple):
        if len(keep) != count or not all(0 <= depth < depths for depth in keep):
            raise SettingsError(
                f"keep names the depths {', '.join(map(str, keep))}; needed is one from 0 to {depths - 1} for "
                f"each of the {count} blocks"
            )
        return [keep[index]]
    if type(keep) is not int or not 0 <= keep < len(used):
        raise SettingsError(
            f"keep is {keep!r}; allowed are 'average', 'stepwise', or 0 to {len(used) - 1}, the "
            "number of a depth among those that a block replaces"
        )
    return [used[keep]]


def _fold_steps(model: AlbertWithHead, new: AlbertWithHead) -> dict[tuple[int, str], float]:
    """Give each depth what it loses, and return what is still missing."""
    options = new.config.litebert
    names = [name for name in PROJECTIONS if name != "gate" or options.ffn == "geglu"]
    missing: dict[tuple[int, str], float] = {}
    for depth, (before, after) in enumerate(zip(model.config.plan, new.config.plan, strict=True)):
        adapter: Any = new.model.encoder.adapters[depth] if options.has_step_parts else None
        for name in names:
            kind = _PLACE[name]
            at = (before.attention, after.attention) if kind == "attentions" else (
                before.ffn, after.ffn)  # fmt: skip
            old_layer: Any = getattr(getattr(model.model.encoder, kind)[at[0]], name)
            new_layer: Any = getattr(getattr(new.model.encoder, kind)[at[1]], name)
            gap = (old_layer.weight - new_layer.weight).double()
            update = None if adapter is None else getattr(adapter, name, None)
            if update is not None:
                u, s, v = torch.linalg.svd(gap, full_matrices=False)
                rank = min(options.lora_rank, len(s))
                root = (s[:rank] / update.scale).sqrt()
                update.a.zero_()
                update.b.zero_()
                update.a[:rank] = root[:, None] * v[:rank]
                update.b[:, :rank] = u[:, :rank] * root
                gap = gap - (u[:, :rank] * s[:rank]) @ v[:rank]
            size = old_layer.weight.double().norm().clamp_min(1e-300)
            missing[(depth, name)] = float(gap.norm() / size)
        if options.depth_norms:
            for place, kind, at in (
                ("attention", "attentions", (before.attention, after.attention)),
                ("ffn", "ffns", (before.ffn, after.ffn)),
            ):
                old_norm: Any = getattr(model.model.encoder, kind)[at[0]].norm
                new_norm: Any = getattr(new.model.encoder, kind)[at[1]].norm
                change = getattr(adapter, f"{place}_norm")
                change.weight.copy_(old_norm.weight - new_norm.weight)
                change.bias.copy_(old_norm.bias - new_norm.bias)
    return missing
