"""A model folder that only litebert computes, as one that transformers and its kin compute too."""

from __future__ import annotations

import json
from pathlib import Path

from litebert.checkpoint.files import TASK_FILE
from litebert.checkpoint.folder import load_encoder, load_model, save_model, saved_head
from litebert.checkpoint.sentence_transformers import write_sentence_transformers
from litebert.errors import SettingsError
from litebert.model.merging import merge_depth_parts
from litebert.recipes.run_folder import model_folder, require_free
from litebert.text.tokenizer import Tokenizer

__all__ = ["write_standard"]


def write_standard(source: Path, out: Path) -> int:
    """Write the twin of a model in the published layout; return its stored weights.

    Args:
        source: model folder, run folder, or a named encoder.
        out: where to; new or empty.

    Raises:
        SettingsError: options that transformers does not know, or `out` is taken.
        CheckpointError: a folder that cannot be used, or the disk refuses.
    """
    require_free(out)
    folder = model_folder(source)
    head = saved_head(folder)
    model = load_encoder(folder) if head is None else load_model(folder)
    merged = merge_depth_parts(model) if model.config.model_type != "albert" else model
    if merged.config.model_type != "albert":
        raise SettingsError(
            "options of the model (config.json, litebert) change what it computes in a way that "
            "transformers does not know; only litebert computes it"
        )
    task = folder / TASK_FILE
    text = task.read_text(encoding="utf-8") if task.is_file() else None
    save_model(merged, out, Tokenizer.from_pretrained(folder), task=text)
    if merged.config.litebert.pooling == "mean":
        told = json.loads(text).get("max_length") if text else None
        length = told if isinstance(told, int) else merged.config.max_position_embeddings
        write_sentence_transformers(out, merged.config, length)
    return sum(parameter.numel() for parameter in merged.parameters())
