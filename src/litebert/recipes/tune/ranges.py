"""Ranges that fit a model and a table, for what was not told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from litebert.errors import SettingsError
from litebert.model.sharing import num_attentions, num_ffns
from litebert.recipes.finetune.defaults import NARROW, WIDE
from litebert.recipes.tune.space import NAMED, Dimension, read_space

if TYPE_CHECKING:
    from litebert.recipes.finetune.settings import FinetuneSettings
    from litebert.recipes.finetune.work import AnyPlan
    from litebert.recipes.tune.settings import TuneSettings

__all__ = ["choose_space", "default_ranges", "train_size"]

BATCH_SIZES: Final = (16, 32, 48, 128)
"""Source: Lan et al. 2020, Table 14, as are the ranges of warm-up and of both dropouts."""
MIN_BATCHES: Final = 4
"""Batches an epoch that a batch size must leave."""

_FREE_WITH_WEIGHTS: Final = frozenset(
    {*NAMED["dropout"], *NAMED["classifier_dropout"], *NAMED["depth"]}
)
"""Configuration values that may differ from those that weights were saved with."""


def train_size(plan: AnyPlan) -> int:
    """Return how many encoded examples are trained on."""
    return len(plan.train.encoded)


def default_ranges(plan: AnyPlan) -> dict[str, Any]:
    """Return a table [tune.space] for this model and amount of data.

    With pretrained weights: the ranges of the paper, the rate lower for wide models (at the paper's
    the largest ones often fail) and higher for narrow ones. From scratch: the shape as well.
    """
    config, size = plan.model.config, train_size(plan)
    batches = [b for b in BATCH_SIZES if b * MIN_BATCHES <= size]
    ranges: dict[str, Any] = {
        "learning_rate": {"low": 1e-5, "high": 5e-5},
        "batch_size": batches if len(batches) > 1 else [8, 16],
        "warmup": {"low": 0.05, "high": 0.25},
        "dropout": [0.0, 0.1],
        "classifier_dropout": [0.0, 0.1, 0.2],
    }
    if plan.model.folder is not None:
        if config.hidden_size >= WIDE:
            ranges["learning_rate"] = {"low": 5e-6, "high": 3e-5}
        elif config.hidden_size <= NARROW:
            ranges["learning_rate"] = {"low": 2e-4, "high": 3e-3}
        return ranges
    width, depth = config.hidden_size, config.num_hidden_layers
    embedding = config.embedding_size
    return ranges | {
        "learning_rate": {"low": 3e-4, "high": 5e-3},
        "embedding_size": sorted({max(8, embedding // 4), max(8, embedding // 2), embedding}),
        "hidden_size": sorted({max(8, width // 2), width, 2 * width}),
        "depth": sorted({max(1, depth // 2), depth, 2 * depth}),
        "sharing": ["all", "attention_only", "ffn_only", "none"],
    }


def choose_space(
    tune: TuneSettings, plan: AnyPlan, told: FinetuneSettings
) -> tuple[Dimension, ...]:
    """Return what varies: the told space, else the default one without what is told as fixed.

    Raises:
        SettingsError: a wrong space, a shape that pretrained weights cannot take, or nothing left.
    """
    if tune.space:
        space = read_space(tune.space)
    else:
        fixed = _told_paths(told)
        ranges = default_ranges(plan)
        space = read_space(
            {
                name: value
                for name, value in ranges.items()
                if not fixed & set(NAMED[name]) and (not isinstance(value, list) or len(value) > 1)  # pyright: ignore[reportUnknownArgumentType]
            }
        )
    if not space:
        raise SettingsError(
            "nothing is left to search: every setting is told; name ranges in [tune.space], such as "
            "learning_rate = {low = 1e-5, high = 5e-5}"
        )
    if plan.model.folder is not None:
        _refuse_other_shapes(space, plan)
    return space


def _told_paths(told: FinetuneSettings) -> set[str]:
    config = told.model.config
    options: Any = config.get("litebert", {})
    return (
        {f"train.{name}" for name in told.train.model_fields_set}
        | {f"model.config.{name}" for name in config}
        | {
            f"model.config.litebert.{name}"
            for name in (options if isinstance(options, dict) else ())
        }
    )


def _refuse_other_shapes(space: tuple[Dimension, ...], plan: AnyPlan) -> None:
    blocks = plan.model.config.plan
    is_one_block = num_attentions(blocks) == num_ffns(blocks) == 1  # runs at any depth
    free = _FREE_WITH_WEIGHTS - ({*NAMED["depth"]} if not is_one_block else set[str]())
    for dimension in space:
        if all(path in free or not path.startswith("model.config.") for path in dimension.paths):
            continue
        raise SettingsError(
            f"tune.space: {dimension.name} changes the shape of the pretrained weights in "
            f"{plan.model.folder}; leave it out, or search from scratch: --from scratch"
        )
