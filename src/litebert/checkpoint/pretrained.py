"""The public model classes: those of `litebert.model`, with `from_pretrained` and `save_pretrained`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch

from litebert.checkpoint.folder import load_encoder, load_model
from litebert.checkpoint.saving import save_model
from litebert.model import albert
from litebert.text.tokenizer import Tokenizer

__all__ = ["AlbertModel", "AlbertWithHead"]


class AlbertModel(albert.AlbertModel):
    """The encoder; see `litebert.model.albert.AlbertModel`."""

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        *,
        add_pooler: bool | None = None,
        allow_missing_pooler: bool = False,
        check_tokenizer: bool = True,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Load the encoder of a model folder; arguments as `litebert.checkpoint.folder.load_encoder`.

        Raises:
            CheckpointError: any fault of the folder; missing, unexpected or mis-shaped weights.
        """
        return load_encoder(
            folder,
            add_pooler=add_pooler,
            allow_missing_pooler=allow_missing_pooler,
            check_tokenizer=check_tokenizer,
            device=device,
            model_class=cls,
        )

    def save_pretrained(self, folder: str | Path, tokenizer: Tokenizer | None = None) -> None:
        """Write a model folder, atomically; see `litebert.checkpoint.saving.save_model`.

        Raises:
            CheckpointError: not a model folder, a vocabulary that does not fit, or the disk refused.
        """
        save_model(self, folder, tokenizer)


class AlbertWithHead(albert.AlbertWithHead):
    """The encoder with a head; see `litebert.model.albert.AlbertWithHead`."""

    @classmethod
    def from_pretrained(
        cls,
        folder: str | Path,
        head: str | None = None,
        *,
        allow_new_head: bool = False,
        allow_missing_pooler: bool = False,
        changes: Mapping[str, Any] | None = None,
        check_tokenizer: bool = True,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Load a model folder; arguments as `litebert.checkpoint.folder.load_model`.

        Raises:
            CheckpointError: any fault of the folder; missing, unexpected or mis-shaped weights.
            SettingsError: no such head, or changes that make no configuration.
        """
        return load_model(
            folder,
            head,
            allow_new_head=allow_new_head,
            allow_missing_pooler=allow_missing_pooler,
            changes=changes,
            check_tokenizer=check_tokenizer,
            device=device,
            model_class=cls,
        )

    def save_pretrained(self, folder: str | Path, tokenizer: Tokenizer | None = None) -> None:
        """Write a model folder, atomically; see `litebert.checkpoint.saving.save_model`.

        Raises:
            CheckpointError: not a model folder, a vocabulary that does not fit, or the disk refused.
        """
        save_model(self, folder, tokenizer)
