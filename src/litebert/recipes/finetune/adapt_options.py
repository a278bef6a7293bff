"""The options of a model that `AdaptSettings` ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litebert.errors import SettingsError
from litebert.recipes.finetune.adapt_settings import ADAPTER_SIZE, LORA_RANK, AdaptSettings

if TYPE_CHECKING:
    from litebert.model.config import AlbertConfig
    from litebert.model.options import LitebertOptions

__all__ = ["added_options", "with_added"]


def with_added(config: AlbertConfig, settings: AdaptSettings) -> AlbertConfig:
    """Return the configuration with the parts of single depths that are asked for.

    Raises:
        SettingsError: as `added_options`.
    """
    added = added_options(settings, config.litebert)
    return config.replace(litebert=added) if added else config


def added_options(settings: AdaptSettings, options: LitebertOptions) -> dict[str, Any]:
    """Return the options to change so that a model gets the parts that are asked for.

    Raises:
        SettingsError: it has other ones of the kind already, or details of parts that are not there.
    """
    rank = settings.lora_rank or (LORA_RANK if settings.method == "lora" else 0)
    size = settings.adapter_size or (ADAPTER_SIZE if settings.method == "adapters" else 0)
    for name, told, has in (
        ("lora_rank", settings.lora_rank, options.lora_rank),
        ("adapter_size", settings.adapter_size, options.adapter_size),
    ):
        if told and has and told != has:
            raise SettingsError(
                f"adapt.{name} is {told}, but the model has {name} {has} already; leave it out to "
                "train that"
            )
    details: dict[str, Any] = {
        name: getattr(settings, name)
        for name in ("lora_alpha", "lora_on")
        if getattr(settings, name) is not None
    }
    if details and (not rank or options.lora_rank):
        why = "the model has its own" if options.lora_rank else "there are no low-rank updates"
        raise SettingsError(f"adapt.{next(iter(details))} changes nothing: {why}; leave it out")
    changes: dict[str, Any] = {}
    if rank and not options.lora_rank:
        changes |= {"lora_rank": rank} | details
    if size and not options.adapter_size:
        changes["adapter_size"] = size
    if settings.depth_norms or settings.method == "norms":
        changes["depth_norms"] = True
    return changes
