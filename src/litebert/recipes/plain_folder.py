"""A BERT folder as a litebert folder of the same function, so that one kind of folder is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from litebert.checkpoint.files import CONFIG_FILE
from litebert.checkpoint.saving import save_model
from litebert.compress.bert import BERT_TYPES
from litebert.compress.teacher import load_encoder_folder
from litebert.model.config import read_config_json
from litebert.tasks.similarity import Similarity
from litebert.text.tokenizer import Tokenizer

__all__ = ["is_bert_folder", "plain_folder", "vector_task"]

TEXT_TOKENS: Final = 128
"""Tokens of a text that vectors are made of, where the model has the positions."""


def is_bert_folder(folder: Path) -> bool:
    """Whether a folder is of the BERT layout.

    Raises:
        CheckpointError: there is no usable configuration.
    """
    return read_config_json(folder / CONFIG_FILE).get("model_type") in BERT_TYPES


def plain_folder(folder: Path, scratch: Path, *, task: str | None = None) -> Path:
    """Return a folder of ours: the given one, or a copy of a BERT in `scratch`.

    Args:
        folder: model folder.
        scratch: where a copy may be written.
        task: text of `task.json` of the copy, whose head is then "sequence"; None: vectors.

    Raises:
        CheckpointError: any fault of the folder.
    """
    if not is_bert_folder(folder):
        return folder
    target = scratch / folder.name
    model = load_encoder_folder(folder, "embedding" if task is None else "sequence")
    text = task or vector_task(model.config.max_position_embeddings)
    save_model(model, target, Tokenizer.from_pretrained(folder), task=text)
    return target


def vector_task(positions: int) -> str:
    """Return the text of `task.json` of a model that makes vectors.

    Args:
        positions: tokens that the model can take.
    """
    return Similarity(max_length=min(TEXT_TOKENS, positions)).to_json()
