"""Words for the masks of a text, from whatever predicts words: an export without torch, else torch."""

from __future__ import annotations

from pathlib import Path

from litebert.errors import CheckpointError
from litebert.models import locate
from litebert.runtime.exported import is_exported
from litebert.runtime.masks import FilledMask, find_masks, likeliest_pieces
from litebert.runtime.session import Session

__all__ = ["fill_masks"]


def fill_masks(model: str | Path, text: str, *, top: int = 5) -> list[list[FilledMask]]:
    """Return the likeliest pieces for each [MASK] of a text, best first.

    Args:
        model: export, model folder or run folder with a head for masked words, or a named encoder.
        text: with the mask word at least once.
        top: pieces for each mask, 1 and more.

    Raises:
        CheckpointError: no such model, or one that does not predict words.
        DataError: there is no mask in the text, or it was cut off.
        SettingsError: `top` below 1.
        MissingDependencyError: a model folder, and torch is not installed.
    """
    source = locate(model)
    if is_exported(source):
        return Session(source).fill_mask(text, top=top)
    return _by_torch(source, text, top)


def _by_torch(source: Path, text: str, top: int) -> list[list[FilledMask]]:
    import torch

    from litebert.checkpoint.folder import load_model, saved_head
    from litebert.model.packing import Packing
    from litebert.recipes.run_folder import model_folder
    from litebert.text.tokenizer import Tokenizer

    folder = model_folder(source)
    head = saved_head(folder)
    if head not in ("mlm", "pretraining"):
        raise CheckpointError(
            f"its head is {head!r}, which does not predict words; give litebert-small-en or a folder of "
            "`litebert pretrain`",
            path=folder,
        )
    model = load_model(folder, "mlm")
    tokenizer = Tokenizer.from_pretrained(folder)
    encoding, masks = find_masks(
        tokenizer, text, max_length=model.config.max_position_embeddings, top=top
    )
    with torch.inference_mode():
        output = model.forward_packed(
            torch.tensor(encoding.ids, dtype=torch.int64),
            Packing.from_lengths([len(encoding.ids)]),
            torch.tensor(encoding.type_ids),
            masked_positions=torch.from_numpy(masks),
        )
    logits = output.logits
    assert isinstance(logits, torch.Tensor)  # noqa: S101 - the head mlm alone gives one
    return likeliest_pieces(logits.numpy(), tokenizer, top)
