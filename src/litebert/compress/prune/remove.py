"""Remove heads, units and vocabulary rows: a new model with smaller matrices, same outputs as masked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from litebert.compress.prune.importance import Importance
from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.resharing import empty_like

__all__ = ["Kept", "choose", "keep_rows", "remove"]

M = TypeVar("M", AlbertModel, AlbertWithHead)

_PART: Final = re.compile(r"encoder\.(attentions|ffns|adapters)\.(\d+)\.(\w+)\.(\w+)$")
_KEYS: Final = ("key", "value", "relative_key")
_QUERIES: Final = ("query", "relative_query")
_ENTERING: Final = ("up", "gate")


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays.

    Attributes:
        heads: of each stored attention, key-value heads (with their query heads), rising; equally many.
        units: of each stored feed-forward, inner units, rising; equally many.
    """

    heads: tuple[tuple[int, ...], ...]
    units: tuple[tuple[int, ...], ...]


def choose(
    config: AlbertConfig,
    importance: Importance,
    *,
    heads: int | None = None,
    keep_heads: Sequence[int] | None = None,
    units: int | None = None,
) -> Kept:
    """Return the most important parts.

    Args:
        config: of the model that was scored.
        importance: scores.
        heads: query heads that stay in each stored attention; None: all.
        keep_heads: which ones instead, in every stored attention (key-value heads where several
            query heads share one).
        units: FFN units that stay in each stored feed-forward; None: all.

    Raises:
        SettingsError: more than there are, fewer than one, or heads that share keys torn apart.
    """
    groups, per_group = (
        config.num_key_value_heads,
        config.num_attention_heads // config.num_key_value_heads,
    )
    if heads is not None and keep_heads is not None:
        raise SettingsError("tell how many heads stay (--heads), or which (--keep-heads), not both")
    if heads is not None and (not 1 <= heads <= config.num_attention_heads or heads % per_group):
        unit = "" if per_group == 1 else f" in multiples of {per_group}, which share keys"
        raise SettingsError(
            f"heads is {heads}; allowed are 1 to {config.num_attention_heads}{unit}"
        )
    if units is not None and not 1 <= units <= config.intermediate_size:
        raise SettingsError(f"ffn is {units}; allowed are 1 to {config.intermediate_size}")
    if keep_heads is not None:
        named = tuple(sorted(set(keep_heads)))
        if not named or named[0] < 0 or named[-1] >= groups or len(named) != len(keep_heads):
            raise SettingsError(
                f"keep_heads is {list(keep_heads)}; allowed are different numbers from 0 to {groups - 1}"
            )
        chosen = tuple(named for _ in importance.heads)
    else:
        count = groups if heads is None else heads // per_group
        chosen = tuple(_top(scores, count) for scores in importance.heads)
    size = config.intermediate_size if units is None else units
    return Kept(chosen, tuple(_top(scores, size) for scores in importance.units))


def remove(model: M, kept: Kept) -> M:
    """Return the model with what stays; its outputs are those of the old one with the rest masked.

    Low-rank updates of single depths lose the same rows and columns.

    Args:
        model: any plan and options; untouched.
        kept: result of `choose`.

    Raises:
        SettingsError: a quantized model.
    """
    config = model.config
    if config.litebert.quantization is not None:
        raise SettingsError(
            "the model is quantized; prune the model that it was made of, then quantize"
        )
    groups = len(kept.heads[0])
    heads = groups * (config.num_attention_heads // config.num_key_value_heads)
    is_plain = config.num_key_value_heads == config.num_attention_heads
    natural = config.hidden_size // heads if config.hidden_size % heads == 0 else None
    new = config.replace(
        num_attention_heads=heads,
        intermediate_size=len(kept.units[0]),
        litebert={
            "head_size": None if natural == config.head_size else config.head_size,
            "num_key_value_heads": None if is_plain else groups,
        },
    )
    state = {name: _cut(name, value, config, kept) for name, value in model.state_dict().items()}
    return _rebuilt(model, new, state)


def keep_rows(model: M, old: Sequence[int], special: dict[str, int | None]) -> M:
    """Return the model with some rows of its token table, and of the bias of an mlm head.

    Args:
        model: untouched.
        old: the old id of each new id.
        special: `pad_token_id` and the like, by the new ids.

    Raises:
        SettingsError: no rows, or ids that the table does not have.
    """
    size = model.config.vocab_size
    if not old or min(old) < 0 or max(old) >= size:
        raise SettingsError(f"ids to keep must lie in 0 to {size - 1}")
    config = model.config.replace(vocab_size=len(old), **special)
    rows = torch.tensor(list(old))
    state = {
        name: value.index_select(0, rows)
        if name.endswith(("embeddings.token.weight", "heads.mlm.bias"))
        else value
        for name, value in model.state_dict().items()
    }
    return _rebuilt(model, config, state)


def _top(scores: Float[Tensor, " n"], count: int) -> tuple[int, ...]:
    order = torch.sort(scores, descending=True, stable=True).indices[:count]
    return tuple(sorted(order.tolist()))


def _cut(name: str, value: Tensor, config: AlbertConfig, kept: Kept) -> Tensor:
    """Take the rows or columns of one weight that stay."""
    match = _PART.search(name)
    if match is None:
        return value
    kind, number, layer, leaf = match[1], int(match[2]), match[3], match[4]
    if kind == "adapters":
        step = config.plan[number]
        heads, units = kept.heads[step.attention], kept.units[step.ffn]
    else:
        heads = kept.heads[number] if kind == "attentions" else ()
        units = kept.units[number] if kind == "ffns" else ()
    size = config.head_size
    wide = size * (config.num_attention_heads // config.num_key_value_heads)
    entering, leaving = ("a",), ("b",)
    if kind != "adapters":
        entering, leaving = ("weight",), ("weight", "bias")
    places: tuple[list[int], int] | None = None
    if kind != "ffns" and layer in _QUERIES and leaf in leaving:
        places = _spread(heads, wide), 0
    elif kind != "ffns" and layer in _KEYS and leaf in leaving:
        places = _spread(heads, size), 0
    elif kind != "ffns" and layer == "output" and leaf in entering:
        places = _spread(heads, wide), 1
    elif kind != "attentions" and layer in _ENTERING and leaf in leaving:
        places = list(units), 0
    elif kind != "attentions" and layer == "down" and leaf in entering:
        places = list(units), 1
    if places is None:
        return value
    return value.index_select(places[1], torch.tensor(places[0], device=value.device))


def _spread(parts: Sequence[int], size: int) -> list[int]:
    """Columns of parts of `size` columns each."""
    return [part * size + column for part in parts for column in range(size)]


def _rebuilt(model: M, config: AlbertConfig, state: dict[str, Tensor]) -> M:
    new = empty_like(model, config)
    new.load_state_dict(state, strict=True)
    return new
