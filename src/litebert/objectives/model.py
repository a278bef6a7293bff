"""The model that objectives need, and what of it is kept as a model folder."""

from __future__ import annotations

from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.objectives.compose import ObjectiveSettings
from litebert.objectives.rtd_model import RtdModel

__all__ = ["make_pretraining_model", "model_to_save"]


def make_pretraining_model(
    config: AlbertConfig, settings: ObjectiveSettings
) -> AlbertWithHead | RtdModel:
    """Return a model with fresh weights and a head for each objective.

    Raises:
        SettingsError: a generator that does not fit to the configuration.
    """
    if settings.rtd is not None and settings.has_rtd:
        return RtdModel(config, settings.rtd, has_order=settings.has_order)
    return AlbertWithHead(config, settings.head)


def model_to_save(model: AlbertWithHead | RtdModel) -> AlbertModel | AlbertWithHead:
    """Return what `checkpoint.saving.save_model` takes: the model, or its discriminator."""
    return model.encoder_model() if isinstance(model, RtdModel) else model
