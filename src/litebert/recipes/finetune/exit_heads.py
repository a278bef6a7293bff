"""Whether the model of a run has a classifier at each depth: as `[exits]` asks for, and not else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from litebert.model.config import AlbertConfig
from litebert.model.presets import PRESETS
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
    is_folder = model.source not in ("auto", *PRESETS) and Path(model.source).exists()
    has = is_folder and AlbertConfig.load(model_folder(Path(model.source))).litebert.exit_heads
    options = model.config.get("litebert", {})
    if (not wanted and not has) or not isinstance(options, dict):
        return settings
    config = {**model.config, "litebert": {**options, "exit_heads": wanted}}
    return settings.model_copy(update={"model": model.model_copy(update={"config": config})})
