"""Carry out `AdaptSettings`: options of the configuration, parts of the model, weights to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from litebert.checkpoint.skeleton import skeleton
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.resharing import add_depth_parts
from litebert.recipes.finetune.adapt_settings import AdaptSettings
from litebert.train.freeze import freeze_weights, present_parts, trained_names

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "TrainedWeights",
    "adapt_lines",
    "count_trained",
    "freeze",
    "loading_changes",
    "with_parts",
]

_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "lora_rank": ("lora_rank", "lora_alpha", "lora_on"),
    "depth_embeddings": ("depth_embeddings",),
    "depth_norms": ("depth_norms",),
    "adapter_size": ("adapter_size",),
}
"""Option that adds weights to single depths -> all options that belong to it."""


@dataclass(frozen=True, slots=True)
class TrainedWeights:
    """How many numbers of a model are trained, and how many there are."""

    trained: int
    total: int

    def describe(self) -> str:
        """Return "71,432 of 1,420,302 weights (5.0 %)"."""
        return f"{self.trained:,} of {self.total:,} weights ({self.trained / self.total:.1%})"


def loading_changes(folder: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Return the told `options` without those that add weights which the folder does not have."""
    own = AlbertConfig.load(folder).litebert
    added = {
        name
        for part, names in _PARTS.items()
        if options.get(part) and not getattr(own, part)
        for name in names
    }
    return {name: value for name, value in options.items() if name not in added}


def with_parts(model: AlbertWithHead, config: AlbertConfig) -> AlbertWithHead:
    """Return the model with the parts of single depths that `config` has and it lacks; same outputs."""
    has, wanted = model.config.litebert, config.litebert
    added: dict[str, Any] = {
        name: getattr(wanted, name)
        for part, names in _PARTS.items()
        if getattr(wanted, part) and not getattr(has, part)
        for name in names
    }
    return add_depth_parts(model, **added) if added else model


def freeze(model: AlbertWithHead, settings: AdaptSettings) -> None:
    """Choose the weights to train.

    Raises:
        SettingsError: parts that the model does not have, or nothing to train.
    """
    if settings != AdaptSettings():
        names = [name for name, _ in model.named_parameters()]
        freeze_weights(model, _trained(names, settings))


def count_trained(config: AlbertConfig, head: str, settings: AdaptSettings) -> TrainedWeights:
    """Count without building the model.

    Raises:
        SettingsError: as `freeze`.
    """
    with skeleton():
        model = AlbertWithHead(config, head)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    trained = _trained(list(sizes), settings)
    return TrainedWeights(sum(sizes[name] for name in trained), sum(sizes.values()))


def adapt_lines(plan: Any) -> list[str]:
    """Return what an `AnyPlan` trains, as lines for a person; none if that is everything.

    Raises:
        SettingsError: settings that do not fit the model.
    """
    settings: AdaptSettings = plan.settings.adapt
    decay = plan.settings.train.depth_decay
    lines: list[str] = []
    if settings != AdaptSettings():
        if settings.method != "full" and plan.model.folder is None:
            raise SettingsError(
                f"adapt.method is {settings.method!r}, but the model starts from random weights, "
                "which would stay random; start from a model folder (--model), or choose full"
            )
        found = count_trained(plan.model.config, plan.task.head, settings)
        lines.append(f"trains    {found.describe()}: {_words(settings, plan.model.config)}")
    if decay is not None:
        lines.append(f"decay     each depth counts {decay:g} times the one after it")
    return lines


def _trained(names: list[str], settings: AdaptSettings) -> set[str]:
    only = None
    if settings.method != "full":
        wanted = {*_asked(settings), "pooler", "head"}
        only = [part for part in present_parts(names) if part in wanted]
    return trained_names(names, only=only, freeze=settings.freeze, train=settings.train)


def _asked(settings: AdaptSettings) -> set[str]:
    """Parts of single depths that settings ask for."""
    told = {
        "lora": settings.lora_rank or settings.method == "lora",
        "adapters": settings.adapter_size or settings.method == "adapters",
        "depth_norms": settings.depth_norms or settings.method == "norms",
    }
    return {part for part, is_told in told.items() if is_told}


def _words(settings: AdaptSettings, config: AlbertConfig) -> str:
    options = config.litebert
    texts = {
        "lora": f"low-rank updates of rank {options.lora_rank}",
        "adapters": f"bottlenecks of width {options.adapter_size}",
        "depth_norms": "LayerNorms of each depth",
    }
    asked = _asked(settings)
    words = [text for part, text in texts.items() if part in asked]
    words.insert(0, "everything" if settings.method == "full" else "pooler and head")
    freeze = f"; without {', '.join(settings.freeze)}" if settings.freeze else ""
    train = f"; with {', '.join(settings.train)}" if settings.train else ""
    return " + ".join(words) + freeze + train
