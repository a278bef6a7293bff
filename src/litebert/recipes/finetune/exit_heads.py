"""Whether the model of a run has a classifier at each depth: as `[exits]` asks for, and not else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litebert.model.config import AlbertConfig
from litebert.model.presets import PRESETS
from litebert.models import locate
from litebert.recipes.finetune.start_choice import AUTO, SCRATCH
from litebert.recipes.run_folder import model_folder

if TYPE_CHECKING:
    from litebert.recipes.finetune.settings import FinetuneSettings

__all__ = ["with_exit_heads"]


def with_exit_heads(settings: FinetuneSettings) -> FinetuneSettings:
    """Return settings whose model configuration says what `exits.heads` says.

    A folder may come with exit heads. Where they are not trained they are left out: those of another
    training would answer wrongly.

    Raises:
        CheckpointError: the folder to start from is not usable.
    """
    wanted = settings.exits.heads
    model = settings.model
    folder = None if model.source in (AUTO, SCRATCH, *PRESETS) else locate(model.source)
    has = (
        folder is not None
        and folder.exists()
        and AlbertConfig.load(model_folder(folder)).litebert.exit_heads
    )
    options = model.config.get("litebert", {})
    if (not wanted and not has) or not isinstance(options, dict):
        return settings
    config = {**model.config, "litebert": {**options, "exit_heads": wanted}}
    return settings.model_copy(update={"model": model.model_copy(update={"config": config})})
